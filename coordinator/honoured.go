package coordinator

// Honoured says whether the native engine takes a variable for a setting.
func Honoured(name string) bool { return index(settings(), canonical(name)) >= 0 }

// canonical is today's name of a setting.
func canonical(name string) string {
	if to, ok := renamed[name]; ok {
		return to
	}
	return name
}

func settingNames() (names []string) {
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}

// Exports are the shell lines that make an engine without any settings behave
// as these effective ones, in the order of the documentation.
func Exports(effective map[string]string) (lines []string) {
	for _, s := range settings() {
		if v, ok := effective[s.name]; ok && v != s.def {
			lines = append(lines, "export "+s.name+"="+quoted(v))
		}
	}
	return lines
}

// quoted is a value as a shell reads it back.
func quoted(v string) string {
	for _, c := range v {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' && c != ',' && c != ':' && c != '/' {
			out := "'"
			for _, c := range v {
				if c == '\'' {
					out += `'\''`
				} else {
					out += string(c)
				}
			}
			return out + "'"
		}
	}
	if v == "" {
		return "''"
	}
	return v
}
