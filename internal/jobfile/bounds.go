package jobfile

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// What a document may cost. The parser's work grows with the square of some of these, and an alias can stand for more
// than memory holds; so they are bounded before it, and before its result is unfolded.
const (
	maxDepth  = 64     // collections in each other, as in the API
	maxTokens = 20_000 // words and signs of one document
	maxNodes  = 50_000 // values of one document, each alias counted with what it stands for
)

// tooCostly finds what in the tokens of a document is beyond the bounds; nil when nothing is.
func tooCostly(file string, tokens token.Tokens) *Error {
	bad := func(t *token.Token, hint, format string, args ...any) *Error {
		e := &Error{File: file, Message: fmt.Sprintf(format, args...), Hint: hint}
		if t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
		return e
	}
	if len(tokens) > maxTokens {
		return bad(tokens[maxTokens], "pass large parameters as one text, or when the job is triggered",
			"the document has more than %d words and signs", maxTokens)
	}
	const hint = "write it flatter"
	flow, row := 0, 0 // open brackets; signs in a row that begin something without a value in between
	var columns []int // of the block collections around
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingValueType:
			row++
			if flow == 0 && t.Position != nil {
				for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
					columns = columns[:len(columns)-1]
				}
				columns = append(columns, t.Position.Column)
			}
		case token.MappingKeyType, token.AnchorType, token.TagType, token.CollectEntryType, token.MergeKeyType:
			row++
		default:
			row = 0
		}
		if flow > maxDepth || len(columns) > maxDepth || row > maxDepth {
			return bad(t, hint, "the document is nested more than %d deep", maxDepth)
		}
	}
	return nil
}

// weigher counts the values that a document unfolds to.
type weigher struct {
	anchors map[string]int
	sum     int
	late    *token.Token // a merge key that is not the first of its mapping
}

// unfolds tells how many values a tree stands for; more than maxNodes, or an alias to what is not there or not
// complete, is false.
func (w *weigher) unfolds(node ast.Node) bool {
	if node == nil || w.sum > maxNodes {
		return w.sum <= maxNodes
	}
	w.sum++
	switch n := node.(type) {
	case *ast.AnchorNode:
		before := w.sum
		if !w.unfolds(n.Value) {
			return false
		}
		w.anchors[n.Name.String()] = w.sum - before
	case *ast.AliasNode:
		size, ok := w.anchors[n.Value.String()]
		w.sum += size
		return ok && w.sum <= maxNodes
	case *ast.TagNode:
		return w.unfolds(n.Value)
	case ast.MapNode:
		it := n.MapRange()
		for first := true; it.Next(); first = false {
			if it.Key().Type() == ast.MergeKeyType && !first && w.late == nil {
				w.late = it.Key().GetToken()
			}
			if !w.unfolds(it.Key()) || !w.unfolds(it.Value()) {
				return false
			}
		}
	case *ast.MappingKeyNode:
		return w.unfolds(n.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			if !w.unfolds(v) {
				return false
			}
		}
	}
	return w.sum <= maxNodes
}

// tooLarge refuses a tree that unfolds to too much, and one with a merge key behind other keys: the reader would
// let it win over what is written out, which no author means.
func tooLarge(file string, body ast.Node) *Error {
	w := weigher{anchors: map[string]int{}}
	if w.unfolds(body) {
		if w.late == nil || w.late.Position == nil {
			return nil
		}
		return &Error{File: file, Line: w.late.Position.Line, Column: w.late.Position.Column,
			Message: "a merge key stands behind other keys of its mapping", Hint: "put << first: what is written out behind it wins"}
	}
	e := &Error{File: file, Message: fmt.Sprintf("the document unfolds to more than %d values, or an alias stands before the end of its anchor", maxNodes),
		Hint: "write out what the aliases stand for"}
	if t := body.GetToken(); t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}
