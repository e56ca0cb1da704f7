package postgres

import (
	"fmt"
	"strings"
)

// fewArrays are rowArrays for a few rows: each value is taken out of its array by its place. To unnest so many arrays costs about as much
// as to write a few rows; to find a value in an array of texts is cheap as long as there are few before it.
var fewArrays = byPlace(rowColumns, `uuid, integer, text, text, uuid, bigint, text, text, text, bigint, text, text,
	integer, text, text, text, integer, bigint, bigint, bigint, text, text`)

// byPlace takes columns of the given types out of arrays, which are parameters in their order.
func byPlace(columns, types string) string {
	names, of := strings.Split(columns, ","), strings.Split(types, ",")
	for i, name := range names {
		names[i] = fmt.Sprintf(`($%d::%s[])[i] AS %s`, i+1, strings.TrimSpace(of[i]), strings.TrimSpace(name))
	}
	return `(SELECT ` + strings.Join(names, ", ") + ` FROM generate_series(1, cardinality($1::` + strings.TrimSpace(of[0]) + `[])) i) u`
}

var (
	qFewInsert  = statement(insertRows(fewArrays))
	qFewUpdate  = statement(updateRows(fewArrays))
	qFewArchive = statement(archiveRows(fewArrays))

	// fewOf are the statements that write a few rows in place of others.
	fewOf = map[query]query{qExecutionInsert: qFewInsert, qExecutionUpdate: qFewUpdate, qExecutionArchive: qFewArchive}
)
