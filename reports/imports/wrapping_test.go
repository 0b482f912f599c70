package imports

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"busbw/reports"
)

// A log that went through other programs as a whole is still the same log.
func TestWrappings(t *testing.T) {
	want, records := importText(t, plainLog)
	quoted := func(line string) string { b, _ := json.Marshal(line); return string(b) }
	wide := func(big bool) func(string) string {
		return func(text string) string {
			var b strings.Builder
			for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
				lo, hi := byte(u), byte(u>>8)
				if big {
					lo, hi = hi, lo
				}
				b.WriteByte(lo)
				b.WriteByte(hi)
			}
			return b.String()
		}
	}
	lines := func(change func(string) string) func(string) string {
		return func(text string) string { return each(text, func(_ int, line string) string { return change(line) }) }
	}
	for what, wrap := range map[string]func(string) string{
		"UTF-16, as PowerShell redirects": wide(false),
		"UTF-16, big end first":           wide(true),
		"UTF-8 with a mark and line ends": func(text string) string { return "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n") },
		"blanks of a web page":            func(text string) string { return strings.ReplaceAll(text, " ", "\u00a0") },
		"a terminal's titles and colours": lines(func(l string) string { return "\x1b]0;user@host: ~\x07\x1b[1;31m" + l + "\x1b[0m\x1b(B" }),
		"a log collector's message": lines(func(l string) string {
			return `{"@timestamp":"2026-11-30T10:00:00Z","message":` + quoted(l) + `,"host":"a"}`
		}),
		"a log collector's msg":             lines(func(l string) string { return `{"level": "info", "msg": ` + quoted(l) + "}" }),
		"a container engine, keys in order": lines(func(l string) string { return `{"log":` + quoted(l+"\n") + `,"stream":"stdout"}` }),
		"a container engine, out of order":  lines(func(l string) string { return `{"stream": "stdout", "log": ` + quoted(l+"\n") + "}" }),
		"journalctl -o json":                lines(func(l string) string { return `{"MESSAGE":` + quoted(l) + `,"_PID":"1"}` }),
		"bytes, as Python shows them":       lines(func(l string) string { return `b'` + l + `\n'` }),
		"Python's logging":                  lines(func(l string) string { return "INFO:root:" + l }),
		"a logging format":                  lines(func(l string) string { return "[2026-11-30 10:00:00,123][INFO] - " + l }),
		"one string of Ansible": func(text string) string {
			return `ok: [gpu-a] => {"changed": true, "stdout": ` + quoted(text) + `, "rc": 0}`
		},
		"lines of Ansible": func(text string) string {
			return "ok: [gpu-a] => {\n    \"out.stdout_lines\": [\n" + lines(func(l string) string { return "        " + quoted(l) + "," })(text) + "    ]\n}\n"
		},
		"tabs": func(text string) string { return strings.ReplaceAll(text, "     ", "\t") },
	} {
		same(t, what, wrap(plainLog), want, records)
	}
	// An average that is cut off in the middle is none.
	got, _ := importText(t, plainLog[:strings.Index(plainLog, "29.7567")+2])
	if w := got.Worlds[0]; w.Average != nil || len(w.Notes) > 0 {
		t.Errorf("cut in the average: %+v", w)
	}
	// rccl-tests marks what is wrong.
	got, all := importText(t, strings.Replace(plainLog, "23.16       0", "23.16      3*", 1))
	if len(all) != 6 || *all[0].Wrong != 3 || len(got.Warnings) > 0 {
		t.Errorf("a mark of a bad value: %+v", all)
	}
}

// Numbers that touch are told apart where size, time and rate agree; a row that
// cannot be read is named.
func TestTouchingColumns(t *testing.T) {
	const head = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
	for row, n := range map[string]int{
		"17179869184    4294967296     float     sum      -1  123456.78139.16243.52       0  123456.78139.16243.52       0\n": 2,
		"17179869184    4294967296     float     sum      -1  123456139.16243.52       0  123456.78  139.16243.52       0\n":  2,
		"17179869184    4294967296     float     sum      -1  123456139.16993.52243.1       0  123456.78139.16243.52  0\n":    0,
		"16M               4194304     float     sum      -1   123.45  139.16  243.52       0   123.45  139.16  243.52  0\n":  0,
	} {
		got, all := importText(t, head+row)
		all = slices.DeleteFunc(all, func(r reports.Result) bool { return r.Error != "" })
		if len(all) != n || n == 0 && len(got.Warnings) != 1 {
			t.Errorf("%s%d records, %q", row, len(all), got.Warnings)
		}
		for _, r := range all {
			if *r.Stated.Algbw != 139.16 || *r.Stated.Busbw != 243.52 || r.Seconds[0] < 0.123456 || r.Seconds[0] > 0.123457 {
				t.Errorf("%s%+v %+v", row, r, r.Stated)
			}
		}
	}
}

// What grep prints of several files, or pdsh of hosts one after another, is no
// launch whose ranks never met; two processes of a launcher are.
func TestNamesBeforeLines(t *testing.T) {
	name := func(who string) string { return each(plainLog, func(_ int, l string) string { return who + l }) }
	for text, found := range map[string]bool{
		name("run1.log:") + name("run2.log:"):           false,
		name("[1,0]<stdout>:") + name("[1,1]<stdout>:"): true,
		name("0: ") + name("1: "):                       true,
	} {
		got, all := importText(t, text)
		if len(all) != 12 || (len(got.Findings) > 0) != found {
			t.Errorf("%.20q: %d records, %+v", text, len(all), got.Findings)
		}
	}
	// Mixed lines of hosts ran together.
	mixed := each(plainLog, func(_ int, l string) string { return "gpu-a: " + l + "\ngpu-b: " + l })
	if got, _ := importText(t, mixed); len(got.Findings) != 1 {
		t.Errorf("mixed: %+v", got)
	}
}

// The least bandwidth that a test was told to want is part of its verdict.
func TestLeastBandwidth(t *testing.T) {
	got, _ := importText(t, strings.Replace(plainLog, "29.7567 ", "29.7567 FAILED", 1))
	if !got.Bad() || !got.Worlds[0].Low || got.Worlds[0].Failed {
		t.Errorf("%+v", got.Worlds)
	}
	if got, _ := importText(t, strings.Replace(plainLog, "29.7567 ", "29.7567 OK", 1)); got.Bad() {
		t.Errorf("%+v", got.Worlds)
	}
}
