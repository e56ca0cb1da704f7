package job

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// What a commit writes as JSON for every shard and fact is written by hand: encoding/json costs several times as much.

// AppendAttempts writes attempts as encoding/json does, without its HTML escapes.
func AppendAttempts(b []byte, all []Attempt) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = all[i].append(b)
	}
	return append(b, ']')
}

func (a *Attempt) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"n":`...), int64(a.Number), 10)
	b = strconv.AppendInt(append(b, `,"token":`...), int64(a.Token), 10)
	b = AppendText(append(b, `,"worker":`...), a.Worker)
	b = AppendText(append(b, `,"state":`...), string(a.State))
	if a.Reason != "" {
		b = AppendText(append(b, `,"reason":`...), string(a.Reason))
	}
	if a.ResumedFrom != 0 {
		b = strconv.AppendInt(append(b, `,"resumedFrom":`...), a.ResumedFrom, 10)
	}
	b = strconv.AppendInt(append(b, `,"startedAt":`...), int64(a.StartedAt), 10)
	if a.EndedAt != 0 {
		b = strconv.AppendInt(append(b, `,"endedAt":`...), int64(a.EndedAt), 10)
	}
	if a.Error != nil {
		b = a.Error.append(append(b, `,"error":`...))
	}
	return append(b, '}')
}

func (f *Failure) append(b []byte) []byte {
	b = append(b, '{')
	if f.Class != "" {
		b = append(AppendText(append(b, `"class":`...), f.Class), ',')
	}
	return append(AppendText(append(b, `"message":`...), f.Message), '}')
}

// AppendText writes a JSON string, without HTML escapes.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendAnyText(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendAnyText(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string never fails
		return append(b, `""`...)
	}
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}
