package linktest

import "testing"

func TestHub(t *testing.T) { RunHub(t) }
