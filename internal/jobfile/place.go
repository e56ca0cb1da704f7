package jobfile

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// place is a position in the text, from 1.
type place struct{ line, column int }

// places says where each field stands: its name and its value, by path.
type places struct {
	keys, values map[string]place
}

func findPlaces(body ast.Node) places {
	p := places{keys: map[string]place{}, values: map[string]place{}}
	p.walk("", body)
	return p
}

func (p places) walk(path string, node ast.Node) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		p.walk(path, n.Value)
		return
	case *ast.TagNode:
		p.walk(path, n.Value)
		return
	case ast.MapNode:
		for it := n.MapRange(); it.Next(); {
			key := it.Key().GetToken()
			sub := join(path, key.Value)
			p.keys[sub] = place{key.Position.Line, key.Position.Column}
			if _, ok := p.values[path]; !ok {
				p.values[path] = p.keys[sub]
			}
			p.walk(sub, it.Value())
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			p.walk(join(path, "["+strconv.Itoa(i)+"]"), v)
		}
	}
	if t := node.GetToken(); t != nil && t.Position != nil {
		if _, ok := p.values[path]; !ok {
			p.values[path] = place{t.Position.Line, t.Position.Column}
		}
	}
}

// value is where the value of a field begins, else that of the nearest field around it.
func (p places) value(path string) place { return nearest(p.values, path) }

// key is where the name of a field stands, else that of the nearest field around it.
func (p places) key(path string) place {
	if at, ok := p.keys[path]; ok {
		return at
	}
	return nearest(p.values, path)
}

func nearest(m map[string]place, path string) place {
	for {
		if at, ok := m[path]; ok || path == "" {
			return at
		}
		path, _ = cutLast(path)
	}
}

func join(path, name string) string {
	if path == "" || strings.HasPrefix(name, "[") {
		return path + name
	}
	return path + "." + name
}

// cutLast splits a path into what is around it and its last name.
func cutLast(path string) (around, name string) {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i], strings.TrimPrefix(path[i:], ".")
	}
	return "", path
}
