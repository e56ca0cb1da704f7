package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/theory/jsonpath"
)

const (
	pathForm     = "jsonpath="
	templateForm = "go-template="
)

// isTemplate tells that a form of -o picks parts of the answer.
func isTemplate(format string) bool {
	return strings.HasPrefix(format, pathForm) || strings.HasPrefix(format, templateForm)
}

// picker prints the parts of an answer that a form names.
type picker struct {
	format string
	path   *jsonpath.Path     // nil: a template
	text   *template.Template // nil: a path
}

// parseTemplate reads jsonpath=EXPR, by RFC 9535 with the leading $ and the braces of kubectl both optional, or
// go-template=TEXT.
func parseTemplate(format string) (*picker, error) {
	p := &picker{format: format}
	if text, ok := strings.CutPrefix(format, templateForm); ok {
		var err error
		p.text, err = template.New("go-template").Funcs(template.FuncMap{"json": compact}).Parse(text)
		if err != nil {
			return nil, usage(fmt.Sprintf("-o %s: %v", format, err))
		}
		return p, nil
	}
	expr := strings.TrimPrefix(format, pathForm)
	if inner, ok := strings.CutPrefix(expr, "{"); ok && strings.HasSuffix(inner, "}") {
		expr = strings.TrimSuffix(inner, "}")
	}
	if !strings.HasPrefix(expr, "$") {
		expr = "$" + expr
	}
	path, err := jsonpath.Parse(expr)
	if err != nil {
		return nil, &failure{code: exitUsage, what: "-o " + format, why: err.Error(),
			todo: "write one path such as jsonpath='$.items[*].metadata.name'; for texts and loops there is go-template="}
	}
	p.path = path
	return p, nil
}

// print writes what a path finds, each value on a line, texts bare and others as JSON; a template writes what it says.
func (p *picker) print(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var tree any
	if err := in.Decode(&tree); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	tree = exactNumbers(tree)
	var out bytes.Buffer // nothing is printed of a template that fails half-way
	if p.text != nil {
		if err := p.text.Execute(&out, tree); err != nil {
			return &failure{code: exitUsage, what: "-o " + p.format, why: err.Error(), todo: "-o json shows what there is"}
		}
	} else {
		for found := range p.path.Select(tree).All() {
			text, ok := found.(string)
			if !ok {
				if text, err = compact(found); err != nil {
					return fmt.Errorf("write the result: %w", err)
				}
			}
			out.WriteString(text + "\n")
		}
	}
	if _, err = w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func compact(v any) (string, error) {
	text, err := itemsOf(map[string]any{"items": []any{v}})
	if err != nil {
		return "", err
	}
	return string(text[0]), nil
}

// exactNumbers makes whole numbers int64: tokens do not fit into a float64.
func exactNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // JSON that was just written
		return f
	case map[string]any:
		for k := range v {
			v[k] = exactNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = exactNumbers(v[i])
		}
	}
	return v
}
