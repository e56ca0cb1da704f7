package jobfile

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// What commands print can be read again: a list of the API ({"items": […]}), an array, and JSON documents one after
// the other are the documents in them.

const (
	pageMessage = "this is one page of a list, and more follow"
	pageHint    = "`takt export` writes all jobs"
)

// members are the documents that a YAML document holds: itself, or what a list has.
func members(file string, body ast.Node) ([]ast.Node, *Error) {
	if a, ok := body.(*ast.AnchorNode); ok {
		body = a.Value
	}
	if list, ok := body.(*ast.SequenceNode); ok {
		return list.Values, nil
	}
	fields, ok := body.(ast.MapNode)
	if !ok {
		return []ast.Node{body}, nil
	}
	var items *ast.SequenceNode
	for it := fields.MapRange(); it.Next(); {
		switch name, value := it.Key().GetToken().Value, it.Value(); name {
		case "spec":
			return []ast.Node{body}, nil
		case "items":
			items, _ = value.(*ast.SequenceNode)
		case "next":
			if t := value.GetToken(); t.Value != "" && value.Type() != ast.NullType {
				return nil, &Error{File: file, Line: t.Position.Line, Column: t.Position.Column, Field: "next", Message: pageMessage, Hint: pageHint}
			}
		}
	}
	if items == nil {
		return []ast.Node{body}, nil
	}
	return items.Values, nil
}

// jsonDocuments cuts JSON into the tokens of its documents; false when the text is none. Each document is bounded by
// itself, however many there are.
func jsonDocuments(file string, text []byte) (docs []token.Tokens, fault *Error, ok bool) {
	if head := bytes.TrimLeft(text, " \t\r\n"); len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return nil, nil, false
	}
	c := cutter{file: file, text: text}
	in := json.NewDecoder(bytes.NewReader(text))
	for in.More() {
		var value json.RawMessage
		if !decodes(in, &value) || !c.cut(value, int(in.InputOffset())-len(value)) {
			return nil, nil, false
		}
	}
	return c.docs, c.fault, in.InputOffset() > 0
}

// decodes reads the next value; false: it is none, and YAML's reader says where it breaks.
func decodes(in *json.Decoder, v any) bool { return in.Decode(v) == nil }

type cutter struct {
	file  string
	text  []byte
	docs  []token.Tokens
	fault *Error
	line  int // newlines before the place at
	at    int
}

// cut takes one value of the text, that begins at a byte of it.
func (c *cutter) cut(value json.RawMessage, from int) bool {
	switch {
	case value[0] == '[':
		return c.elements(value, from)
	case value[0] != '{' || !c.list(value, from):
		c.document(value, from)
	}
	return true
}

func (c *cutter) elements(list json.RawMessage, from int) bool {
	in := json.NewDecoder(bytes.NewReader(list))
	_, err := in.Token() // the bracket
	for err == nil && in.More() {
		var value json.RawMessage
		if err = in.Decode(&value); err == nil {
			c.document(value, from+int(in.InputOffset())-len(value))
		}
	}
	return err == nil
}

// list takes a list of the API; false: the object is none.
func (c *cutter) list(object json.RawMessage, from int) bool {
	in := json.NewDecoder(bytes.NewReader(object))
	_, err := in.Token() // the brace
	var items json.RawMessage
	itemsAt := 0
	for err == nil && in.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = in.Token(); err == nil {
			err = in.Decode(&value)
		}
		at := from + int(in.InputOffset()) - len(value)
		switch {
		case err != nil || name == "spec":
			return false
		case name == "items" && value[0] == '[':
			items, itemsAt = value, at
		case name == "next" && string(value) != `""` && string(value) != "null":
			line, column := c.place(at)
			c.fault = &Error{File: c.file, Line: line, Column: column, Field: "next", Message: pageMessage, Hint: pageHint}
		}
	}
	return items != nil && c.elements(items, itemsAt)
}

func (c *cutter) document(value json.RawMessage, from int) {
	tokens := lexer.Tokenize(string(value))
	line, column := c.place(from)
	for _, t := range tokens {
		if t.Position == nil {
			continue
		}
		if t.Position.Line == 1 {
			t.Position.Column += column - 1
		}
		t.Position.Line += line - 1
	}
	c.docs = append(c.docs, tokens)
}

// place is the line and column of a byte; later ones are asked for later, or the count begins anew.
func (c *cutter) place(at int) (line, column int) {
	if at < c.at {
		c.line, c.at = 0, 0
	}
	c.line += bytes.Count(c.text[c.at:at], []byte("\n"))
	c.at = at
	begin := bytes.LastIndexByte(c.text[:at], '\n') + 1
	return c.line + 1, len([]rune(strings.ToValidUTF8(string(c.text[begin:at]), "?"))) + 1
}
