package worker

import "strconv"

// effective is what the settings came to in a case, read from what was made:
// the schedule, and the connections of a local rank whose group needs some.
func (r *runner) effective(c *liveCase) map[string]string {
	shape := c.Schedule.Shape()
	did := map[string]string{"pieces": strconv.Itoa(shape.Pieces), "channels": strconv.Itoa(shape.Channels)}
	for _, k := range r.ranks {
		if k.link == nil || k.group < 0 || !r.team(c, k).Apart() {
			continue
		}
		if sockets, threads := k.link.Streams(); sockets > 0 {
			did["sockets"], did["socket threads"] = strconv.Itoa(sockets), strconv.Itoa(threads)
			break
		}
	}
	return did
}
