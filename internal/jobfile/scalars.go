package jobfile

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

// What a plain word (one without quotes) means. JSON decides first: its numbers are numbers, and keep their digits.
// Beyond JSON a word means what readers of YAML 1.1 and 1.2 agree upon; where they differ, a guess would be silent,
// so it is refused.
var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	// agreed are further forms with one meaning everywhere: +1, .5, 1., 0x1F.
	agreed = regexp.MustCompile(`^([-+]?)(?:0x([0-9a-fA-F]+)|(0|[1-9][0-9]*)?(?:\.([0-9]*))?([eE][-+]?[0-9]+)?)$`)
	// numeric are all words that some reader takes for a number.
	numeric = regexp.MustCompile(`(?i)^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:e[-+]?[0-9]+)?$|^[-+]?0(?:x[0-9a-f_]+|o[0-7_]+|b[01_]+)$`)
	noJSON  = regexp.MustCompile(`^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)
	// truths are words that are true and false to some readers and text to others.
	truths = []string{"yes", "no", "on", "off"}
)

// numberText is the JSON of a plain word that is a number; "" when it is none, or not the same to every reader.
func numberText(word string) string {
	if jsonNumber.MatchString(word) {
		return word
	}
	m := agreed.FindStringSubmatch(word)
	if m == nil {
		return ""
	}
	sign := strings.TrimPrefix(m[1], "+")
	if m[2] != "" {
		n, _ := new(big.Int).SetString(m[2], 16) // the expression has only digits there
		return sign + n.String()
	}
	whole, fraction, exponent := m[3], m[4], m[5]
	if whole == "" && fraction == "" {
		return ""
	}
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction + exponent
}

// settler gives the plain words of a tree their meaning.
type settler struct {
	file     string
	registry huma.Registry
	faults   Errors
}

func (s *settler) refuse(t *token.Token, path, hint, format string, args ...any) ast.Node {
	if job.SecretName(path) {
		args = []any{"this value"}
	}
	e := &Error{File: s.file, Field: path, Message: fmt.Sprintf(format, args...), Hint: hint}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	s.faults = append(s.faults, e)
	return ast.Null(t) // what is said is said; the rest of the document is judged as well
}

// settle gives what stands for node. schema is what may stand there; nil: anything.
func (s *settler) settle(node ast.Node, schema *huma.Schema, path string) ast.Node {
	if schema != nil {
		schema = resolve(s.registry, schema)
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		n.Value = s.settle(n.Value, schema, path)
	case *ast.TagNode:
		return s.tag(n, path)
	case *ast.MappingKeyNode:
		n.Value = s.settle(n.Value, schema, path)
	case ast.MapNode:
		s.mapping(n, schema, path)
	case *ast.SequenceNode:
		var items *huma.Schema
		if schema != nil {
			items = schema.Items
		}
		for i, v := range n.Values {
			n.Values[i] = s.settle(v, items, join(path, "["+strconv.Itoa(i)+"]"))
		}
	case ast.ScalarNode:
		return s.scalar(n, schema, path)
	}
	return node
}

func (s *settler) scalar(n ast.ScalarNode, schema *huma.Schema, path string) ast.Node {
	t := n.GetToken()
	if quoted(t) || n.Type() == ast.LiteralType {
		return n
	}
	word := t.Value
	typ := ""
	if schema != nil {
		typ = schema.Type
	}
	switch number := numberText(word); {
	case n.Type() == ast.BoolType || n.Type() == ast.NullType:
		return n
	case number != "":
		if !job.FitsFloat(number) {
			return s.refuse(t, path, "put it in quotes if it is text", "%.40s is beyond what a number of 64 bits holds", word)
		}
		if f, err := strconv.ParseFloat(number, 64); err == nil && typ == "integer" && f == float64(int64(f)) && strings.ContainsAny(number, ".eE") {
			number = strconv.FormatInt(int64(f), 10)
		}
		return &ast.IntegerNode{BaseNode: &ast.BaseNode{}, Token: t, Value: json.Number(number)}
	case noJSON.MatchString(word):
		return s.refuse(t, path, "leave it out, or put it in quotes if it is text", "%s is no number that JSON can carry", word)
	case numeric.MatchString(word):
		return s.refuse(t, path, "write a number as JSON does, such as 1000 or 0.5; put text in quotes", "%.40s is a number to some readers of YAML and another or text to others", word)
	case slices.Contains(truths, strings.ToLower(word)) && typ != "string":
		return s.refuse(t, path, "write true or false; put text in quotes", "%s is true or false to some readers of YAML and text to others", word)
	}
	return n
}

func quoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// tag takes !!str, which makes any word text, and refuses the others: each reader has its own.
func (s *settler) tag(n *ast.TagNode, path string) ast.Node {
	word, isScalar := n.Value.(ast.ScalarNode)
	if n.Start.Value != "!!str" || !isScalar {
		return s.refuse(n.Start, path, "leave it out; quotes make a text", "the tag %.40s is not taken", n.Start.Value)
	}
	if t := word.GetToken(); quoted(t) || word.Type() == ast.LiteralType {
		return word
	}
	text := word.GetToken().Value
	if word.GetToken().Type == token.ImplicitNullType {
		text = "" // nothing stands there
	}
	return &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: word.GetToken(), Value: text}
}

// mapping settles the fields of a mapping. A key is text as it is written, also when it looks like a number.
func (s *settler) mapping(n ast.MapNode, schema *huma.Schema, path string) {
	seen := map[string]bool{}
	for it := n.MapRange(); it.Next(); {
		pair := it.KeyValue()
		if pair.Key.IsMergeKey() {
			pair.Value = s.settle(pair.Value, schema, path)
			continue
		}
		t := pair.Key.GetToken()
		name := t.Value
		sub := join(path, name)
		switch key := pair.Key.(type) {
		case *ast.StringNode:
			name = key.Value
		case *ast.NullNode, *ast.TagNode, *ast.AliasNode, *ast.MappingKeyNode, *ast.AnchorNode:
			if _, plain := key.(*ast.NullNode); !plain || name == "~" || name == "" {
				s.refuse(t, path, "write the name itself", "%s must be a plain word or text in quotes", "the name of a field")
				continue
			}
			pair.Key = &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: t, Value: name}
		default:
			pair.Key = &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: t, Value: name}
		}
		if seen[name] {
			s.refuse(t, sub, "keep one of them", "%s is already defined", "the field")
			continue
		}
		seen[name] = true
		var field *huma.Schema
		if schema != nil {
			field = propertyOf(schema, name)
		}
		pair.Value = s.settle(pair.Value, field, sub)
	}
}

// checkInstant finds instants that no schedule and no store can hold.
func (d *Doc) checkInstant(path, text string) *Error {
	t, err := time.Parse(time.RFC3339, text)
	if err == nil && t.Year() >= 1970 && t.Year() <= 9999 {
		return nil
	}
	return d.At(path, fmt.Sprintf("%.40q is no instant between the years 1970 and 9999", text), "write it as 2026-12-31T08:00:00+08:00")
}

// checkDuration finds what the pattern of durations lets pass.
func (d *Doc) checkDuration(path, text string) *Error {
	v, err := takt.ParseDuration(text)
	switch {
	case err != nil && strings.Contains(err.Error(), "ten years"):
		return d.At(path, fmt.Sprintf("%.40q is more than ten years", text), "write ten years at most, such as 3650d; where a length of time bounds something, leave it out for no bound")
	case err == nil && v.Std()%1_000_000 != 0:
		return d.At(path, fmt.Sprintf("%.40q has a fraction of a millisecond", text), "durations are whole milliseconds")
	}
	return nil // the pattern has refused what is no duration
}
