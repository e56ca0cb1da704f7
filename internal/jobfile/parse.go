package jobfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/taktsched/takt"
)

// MaxSize is the size in bytes of the largest file that Parse takes.
const MaxSize = 4 << 20

// Doc is one document of a file.
type Doc struct {
	File string
	Line int // of its first field
	Job  takt.Job

	Calendar *takt.Calendar // of a document of kind Calendar; then Job is empty

	text   []byte // of the file
	places places
}

// Parse is ParseIn for the namespace default.
func Parse(file string, data []byte) ([]Doc, error) { return ParseIn("default", file, data) }

// ParseIn reads every document of a file; those that name no namespace are judged as ones of the given one. file names
// it in errors. The error is Errors and holds every fault that was found; then there are no documents. A file without
// documents gives none.
func ParseIn(namespace, file string, data []byte) ([]Doc, error) {
	if len(data) > MaxSize {
		return nil, Errors{{File: file, Message: fmt.Sprintf("the file has more than %d MiB", MaxSize>>20),
			Hint: "cut it into several files; apply takes a directory"}}
	}
	data, faults := plainText(file, data)
	if len(faults) > 0 {
		return nil, faults
	}
	cut, fault, isJSON := jsonDocuments(file, data)
	if !isJSON {
		cut = split(lexer.Tokenize(string(data)))
	}
	if fault != nil {
		faults = append(faults, fault)
	}
	var docs []Doc
	for _, tokens := range cut {
		if e := tooCostly(file, tokens); e != nil {
			return nil, append(faults, e).show(data)
		}
		found, errs := parseOne(namespace, file, data, tokens)
		docs, faults = append(docs, found...), append(faults, errs...)
	}
	if len(faults) > 0 {
		return nil, faults.show(data)
	}
	return docs, nil
}

// parseOne reads the tokens of one document, which may hold several.
func parseOne(namespace, file string, data []byte, tokens token.Tokens) (docs []Doc, faults Errors) {
	tree, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, Errors{syntaxError(file, err)}
	}
	for _, d := range tree.Docs {
		if d.Body == nil || d.Body.Type() == ast.NullType || d.Body.Type() == ast.CommentType {
			continue
		}
		if e := tooLarge(file, d.Body); e != nil {
			faults = append(faults, e)
			continue
		}
		bodies, e := members(file, d.Body)
		if e != nil {
			faults = append(faults, e)
		}
		for _, body := range bodies {
			doc, errs := read(namespace, file, data, body)
			docs, faults = append(docs, doc), append(faults, errs...)
		}
	}
	return docs, faults
}

// split cuts the tokens into documents. The parser would drop, without a word, all that follows an empty
// document, so it is given one at a time.
func split(tokens token.Tokens) []token.Tokens {
	docs := []token.Tokens{nil}
	for _, t := range tokens {
		if t.Type == token.DocumentHeaderType || t.Type == token.DocumentEndType {
			docs = append(docs, nil)
			continue
		}
		docs[len(docs)-1] = append(docs[len(docs)-1], t)
	}
	return slices.DeleteFunc(docs, func(d token.Tokens) bool { return len(d) == 0 })
}

// At makes an error about a field of the document, such as one that the server found.
func (d *Doc) At(field, message, hint string) *Error {
	p := d.places.value(field)
	return &Error{File: d.File, Line: p.line, Column: p.column, Field: field, Message: message, Hint: hint, Excerpt: excerpt(d.text, p)}
}

func read(namespace, file string, data []byte, body ast.Node) (Doc, Errors) {
	doc := Doc{File: file, text: data, places: findPlaces(body)}
	doc.Line = doc.places.value("").line
	if hint := otherKinds[kindOf(body)]; hint != "" {
		return doc, Errors{doc.At("kind", "this is a document of kind "+kindOf(body)+", not of kind Job", hint)}
	}
	schema := jobSchema
	if kindOf(body) == "Calendar" {
		schema = calendarSchema
	}
	registry, root := schema()
	text, faults := doc.judge(body, registry, resolve(registry, root))
	if text == nil {
		return doc, faults
	}
	if kindOf(body) == "Calendar" {
		return doc, doc.readCalendar(text, namespace, faults)
	}
	faults = append(faults, doc.checkRules(text, namespace, faults)...)
	if len(faults) > 0 {
		return doc, faults.inOrder()
	}
	if err := json.Unmarshal(text, &doc.Job); err != nil {
		return doc, Errors{doc.undecodable("", err)}
	}
	return doc, nil
}

// judge gives the JSON of a document, and every fault that the tags of its type find: the rules that the server
// applies to the same text. nil: there is no JSON of it.
func (d *Doc) judge(body ast.Node, registry huma.Registry, schema *huma.Schema) ([]byte, Errors) {
	words := settler{file: d.File, registry: registry}
	body = words.settle(body, schema, "")
	faults := words.faults
	var tree any
	if err := yaml.NodeToValue(body, &tree); err != nil {
		return nil, append(faults, syntaxError(d.File, err))
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, append(faults, d.At("", "the document has a value that JSON cannot carry: "+err.Error(), "put it in quotes if it is text, or leave it out"))
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, append(faults, d.At("", err.Error(), "put it in quotes if it is text, or leave it out"))
	}
	var res huma.ValidateResult
	huma.Validate(registry, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, value, &res)
	var more Errors
	for _, err := range res.Errors {
		more = append(more, d.explain(err, registry, schema))
	}
	more = append(more, d.strict(registry, schema, "", value)...)
	for _, e := range more {
		if !faults.has(e.Field) { // of a word that means nothing, that is said already
			faults = append(faults, e)
		}
	}
	return text, faults.inOrder()
}

// undecodable is a value that its type cannot hold, in the part at field.
func (d *Doc) undecodable(field string, err error) *Error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return d.At(t.Field, "wrong type: "+t.Value+" does not fit here", "see `takt schema job."+t.Field+"`")
	}
	return d.At(field, err.Error(), "`takt schema` shows what stands there")
}

func syntaxError(file string, err error) *Error {
	e := &Error{File: file, Message: err.Error(), Hint: "the file must be YAML"}
	var y yaml.Error
	if errors.As(err, &y) {
		e.Message = y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}
