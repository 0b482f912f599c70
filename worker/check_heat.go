package worker

import (
	"path"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

// checkHeat reads the sensors that network cards have in sysfs (kernel
// Documentation/hwmon/sysfs-interface; values in thousandths of a degree).
func checkHeat(s *survey) []reports.Finding {
	var found []judge.Sensor
	for _, d := range s.kind(judge.NIC) {
		dir := path.Join(pciDir, d.Addr, "hwmon")
		for _, h := range s.names(dir) {
			at := path.Join(dir, h)
			for _, name := range s.names(at) {
				sensor, ok := strings.CutSuffix(name, "_input")
				if !ok || !strings.HasPrefix(sensor, "temp") || len(found) == maxSensors {
					continue
				}
				now, told := s.number(at, name)
				if !told {
					continue
				}
				x := judge.Sensor{Origin: judge.Origin("/" + path.Join(at, name)), Subject: strings.TrimSpace(d.Subject() + " " + or(s.word(at, sensor+"_label"), sensor)), C: float64(now) / 1000}
				if limit, told := s.number(at, sensor+"_crit"); told && limit > 0 {
					x.CriticalC = float64(limit) / 1000
				}
				found = append(found, x)
			}
		}
	}
	return judge.Temperatures(found, "")
}

// maxSensors is far above any machine.
const maxSensors = 1024
