package job

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a job's labels.
const (
	MaxLabels     = 32
	MaxLabelValue = 256 // bytes
)

var labelPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`)

// CheckLabels judges the labels of a job; none when they can be kept. The faults name metadata.labels, or the label.
func CheckLabels(labels map[string]string) (all Faults) {
	const field = "metadata.labels"
	if len(labels) > MaxLabels {
		return Faults{invalid("too_many_labels", field, "a job has at most %d labels", MaxLabels).WithHint("leave some out")}
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if !labelPattern.MatchString(k) {
			all = append(all, invalid("bad_label", field, "%.64q is no name of a label", k).
				WithHint("names are 1 to 63 letters, digits, '.', '_', '/' and '-', with a letter or digit at both ends"))
		} else if v := labels[k]; len(v) > MaxLabelValue || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			all = append(all, invalid("bad_label", field+"."+k, "the label's value is longer than %d bytes, or holds NUL or bytes that are not UTF-8", MaxLabelValue).
				WithHint("shorten it; long texts go into spec.description"))
		}
	}
	return all
}
