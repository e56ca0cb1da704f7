package job

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// MaskedText stands in what people read where a secret value is. It is refused in what they write, so that a document
// that was read cannot put it in the value's place.
const MaskedText = "(masked)"

// secretWords make a name one of a secret, in any case and with any separators in between.
var secretWords = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "credential", "authorization", "bearer"}

// userinfo is a password inside an address, such as that of postgres://user:password@host/db. An @ in it may not be escaped.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^/?#\s:@]*:)([^/?#\s]+)(@)`)

// SecretName tells whether a name is one of a secret: it holds password, passwd, passphrase, secret, token (tokens are
// counted, not kept), apiKey, accessKey, privateKey, credential, authorization or bearer, in any case, whatever stands between.
func SecretName(name string) bool {
	return holdsSecretWord(counted.ReplaceAllString(name, ""))
}

// counted are names of numbers of tokens: tokens, maxTokens, tokens_used.
var counted = regexp.MustCompile(`([tT]okens|TOKENS)([^a-z]|$)`)

func holdsSecretWord(text string) bool {
	bare := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f {
			return r
		}
		return -1
	}, strings.ToLower(text))
	for _, word := range secretWords {
		if strings.Contains(bare, word) {
			return true
		}
	}
	return false
}

// Mask puts MaskedText in the place of secret values: texts and numbers below a name that is one of a secret, and
// passwords inside addresses. What holds none comes back as it is.
func Mask(v json.RawMessage) json.RawMessage { return MaskAt("", v) }

// MaskAt is Mask for the value at a path such as db.password: its names count too.
func MaskAt(path string, v json.RawMessage) json.RawMessage {
	below := SecretName(path)
	if !below && !suspect(v) {
		return v
	}
	x, ok := decoded(v)
	if !ok {
		return v
	}
	masked, changed := mask(x, below)
	if !changed {
		return v
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(masked) != nil {
		return json.RawMessage(strconv.Quote(MaskedText)) // it was decoded from JSON
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// said are the ways in which a secret stands in a sentence: name=value and Bearer value.
var said = regexp.MustCompile(`([A-Za-z0-9_.-]+)(=)("[^"]*"|'[^']*'|[^\s"',;&]+)|(?i:\b(bearer)( +)([A-Za-z0-9._~+/=-]{8,}))`)

// MaskText puts MaskedText in the place of secrets inside a text for people, such as the error of a handler: passwords
// inside addresses, and the values of name=value and Bearer value. What is worded otherwise is not found.
func MaskText(text string) string {
	if !strings.Contains(text, "://") && !holdsSecretWord(text) {
		return text
	}
	text = userinfo.ReplaceAllString(text, "${1}"+MaskedText+"${3}")
	return said.ReplaceAllStringFunc(text, func(s string) string {
		m := said.FindStringSubmatch(s)
		if m[1] != "" && !SecretName(m[1]) {
			return s
		}
		return m[1] + m[2] + m[4] + m[5] + MaskedText
	})
}

// suspect is a quick look: false when there is nothing to mask for sure.
func suspect(v json.RawMessage) bool {
	if bytes.Contains(v, []byte("://")) || bytes.IndexByte(v, '\\') >= 0 {
		return true
	}
	return holdsSecretWord(string(v))
}

func decoded(v json.RawMessage) (x any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	return x, d.Decode(&x) == nil
}

// mask masks in place; below: a name around is one of a secret.
func mask(v any, below bool) (any, bool) {
	changed := false
	switch x := v.(type) {
	case map[string]any:
		for name, part := range x {
			m, c := mask(part, below || SecretName(name))
			x[name], changed = m, changed || c
		}
	case []any:
		for i, part := range x {
			m, c := mask(part, below)
			x[i], changed = m, changed || c
		}
	case json.Number:
		if below {
			return MaskedText, true
		}
	case string:
		if below && x != "" {
			return MaskedText, true
		}
		if text := userinfo.ReplaceAllString(x, "${1}"+MaskedText+"${3}"); text != x {
			return text, true
		}
	}
	return v, changed
}

// FindMasked gives the path of a value that Mask put there, such as db.password; false when there is none.
func FindMasked(v json.RawMessage) (path string, found bool) {
	if !bytes.Contains(v, []byte(MaskedText)) {
		return "", false
	}
	x, ok := decoded(v)
	if !ok {
		return "", false
	}
	return findMasked(x, "", false)
}

func findMasked(v any, path string, below bool) (string, bool) {
	switch x := v.(type) {
	case map[string]any:
		for name, part := range x {
			if at, found := findMasked(part, strings.TrimPrefix(path+"."+name, "."), below || SecretName(name)); found {
				return at, true
			}
		}
	case []any:
		for i, part := range x {
			if at, found := findMasked(part, path+"["+strconv.Itoa(i)+"]", below); found {
				return at, true
			}
		}
	case string:
		return path, below && x == MaskedText || strings.Contains(x, ":"+MaskedText+"@")
	}
	return "", false
}

// CheckMasked refuses params in which a masked value was sent back; nil when there is none. field is where they stand.
func CheckMasked(field string, params json.RawMessage) *Error {
	path, found := FindMasked(params)
	if !found {
		return nil
	}
	return invalid("masked_value", strings.TrimSuffix(field+"."+path, "."), "this value was masked when it was read, and writing it would lose the secret").
		WithHint("write the value itself; `takt export` writes documents with their values")
}
