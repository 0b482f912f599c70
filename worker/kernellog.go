package worker

import "golang.org/x/sys/unix"

// KernelLog is this machine's kernel log (syslog(2), SYSLOG_ACTION_READ_ALL),
// at most its last 4 MiB; "" where it may not be read.
func KernelLog() string {
	const readAll, sizeBuffer = 3, 10
	n, err := unix.Klogctl(sizeBuffer, nil)
	if err != nil || n <= 0 {
		return ""
	}
	buf := make([]byte, min(n, maxFile))
	n, err = unix.Klogctl(readAll, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
