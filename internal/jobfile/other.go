package jobfile

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// otherKinds are documents that stand beside job files, with what to do about one that was taken for a job.
var otherKinds = map[string]string{
	"Handlers": "handlers are for `takt agent --handlers FILE`: keep them in a directory of their own, or name the files of jobs, each with -f",
	"Config":   "contexts are for TAKT_CONFIG: keep them in a directory of their own, or name the files of jobs, each with -f",
}

// kindOf is what a document says it is; "" when it does not.
func kindOf(body ast.Node) string {
	if n, ok := body.(ast.MapNode); ok {
		for it := n.MapRange(); it.Next(); {
			if text, ok := it.Value().(*ast.StringNode); ok && it.Key().GetToken().Value == "kind" {
				return text.Value
			}
		}
	}
	return ""
}

// ParseOther reads a file with exactly one document that is no job, such as the handlers of an agent,
// into a T by the rules that the type's tags declare. kind names it in errors. The error is Errors and
// holds every fault that was found. The document makes errors with places for rules that no tag can
// say; its Job is empty.
func ParseOther[T any](file, kind string, data []byte) (T, *Doc, error) {
	var value T
	if len(data) > MaxSize {
		return value, nil, Errors{{File: file, Message: fmt.Sprintf("the file has more than %d MiB", MaxSize>>20), Hint: "leave out what is not of kind " + kind}}
	}
	data, faults := plainText(file, data)
	if len(faults) > 0 {
		return value, nil, faults
	}
	var bodies []ast.Node
	for _, tokens := range split(lexer.Tokenize(string(data))) {
		if e := tooCostly(file, tokens); e != nil {
			return value, nil, Errors{e}.show(data)
		}
		tree, err := parser.Parse(tokens, 0)
		if err != nil {
			return value, nil, Errors{syntaxError(file, err)}.show(data)
		}
		for _, d := range tree.Docs {
			if d.Body != nil && d.Body.Type() != ast.NullType && d.Body.Type() != ast.CommentType {
				bodies = append(bodies, d.Body)
			}
		}
	}
	switch len(bodies) {
	case 0:
		return value, nil, Errors{{File: file, Message: "the file holds no document of kind " + kind, Hint: "begin one with kind: " + kind}}
	case 1:
	default:
		if kindOf(bodies[0]) == "Job" {
			break // that is what is wrong with it
		}
		second := findPlaces(bodies[1]).value("")
		return value, nil, Errors{{File: file, Line: second.line, Column: second.column,
			Message: "a second document: the file holds one of kind " + kind, Hint: "put each into a file of its own"}}
	}
	doc := &Doc{File: file, text: data, places: findPlaces(bodies[0])}
	doc.Line = doc.places.value("").line
	if kindOf(bodies[0]) == "Job" {
		return value, nil, Errors{doc.At("kind", "this is a document of kind Job, not of kind "+kind, "`takt apply -f FILE` takes jobs")}
	}
	if e := tooLarge(file, bodies[0]); e != nil {
		return value, nil, Errors{e}.show(data)
	}
	registry := huma.NewMapRegistry(definitions, huma.DefaultSchemaNamer)
	text, faults := doc.judge(bodies[0], registry, registry.Schema(reflect.TypeFor[T](), false, kind))
	if len(faults) > 0 {
		return value, nil, faults.show(data)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, nil, Errors{doc.undecodable("", err)}
	}
	return value, doc, nil
}
