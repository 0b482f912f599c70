package reports

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
)

// The page's parts: template, style, script, and Apache ECharts (Apache-2.0),
// of which "make echarts" bundles what the script uses.
//
//go:embed page
var pageParts embed.FS

// htmlPage writes one self-contained file: no request leaves it, and its
// Content-Security-Policy would stop one. Whatever the results say is escaped
// by html/template for the place where it stands.
func htmlPage(b *bytes.Buffer, results []Result, _ bool) error {
	return writePage(b, results, Around{})
}

func writePage(b *bytes.Buffer, results []Result, a Around) error {
	page, err := pageOf(results, &a)
	if err != nil {
		return err
	}
	part := func(name string) string {
		text, e := pageParts.ReadFile("page/" + name)
		if e != nil {
			err = e
		}
		return string(text)
	}
	page.Style = template.CSS(part("style.css"))
	page.Script = template.JS(part("page.js"))
	if page.Charts {
		page.Library = template.JS(part("echarts.min.js"))
	}
	if err != nil {
		return fmt.Errorf("the page's parts: %w", err)
	}
	t, err := template.ParseFS(pageParts, "page/page.tmpl")
	if err != nil {
		return err
	}
	return t.Execute(b, page)
}

// page is what the template shows, in its order.
type page struct {
	Title   string
	Verdict verdict
	Leads   []string     // for somebody who has ten seconds
	Accept  []pageAccept // of busbw accept
	Checks  *pageChecks  // nil: none were given
	Runs    []pageRun

	Topologies []pageTopology
	Layouts    int      // beyond those that are drawn
	Odd        []string // what some node has that the others have not

	Charts  bool
	Style   template.CSS
	Script  template.JS
	Library template.JS
}

// verdict is a word with its class of colour, and why.
type verdict struct {
	Class string // "good", "warn", "bad"
	Word  string
	Why   string
}

type pageRun struct {
	Name     string
	Facts    [][2]string // what the run was: head and text
	Settings [][2]string
	Notes    []string
	Findings []pageFinding
	Nodes    []pageNode
	Between  string // how nodes are joined
	Groups   []pageGroup
}

// pageFinding is a remark and the rows that it concerns.
type pageFinding struct {
	Class  string // "bad", "warn", "info"
	Text   string
	Rows   []string // by operation
	Remedy string
}

// pageNode is a node with its ranks, coloured by how late they are.
type pageNode struct {
	Host  string
	Ranks []pageRank
}

type pageRank struct {
	Rank  int
	Class string // "r0" (as the others) to "r3" (far slower)
	Text  string // for pointer and screen reader
}

// pageGroup is one operation: the comparison, the charts, the numbers.
type pageGroup struct {
	ID      string
	Heading string
	Detail  string
	Kinds   []string
	Curves  string // what the curves show
	Bars    *pageBars
	Versus  *pageTable
	All     *pageTable
	Chart   chart
	Sizes   []string // that the charts for one size can show
}

// pageBars are the scopes at one size, drawn to scale of the largest of busbw
// and limit.
type pageBars struct {
	Size string
	Bars []pageBar
}

type pageBar struct {
	Scope, Algorithm, Busbw, Limit, LimitName, Share string
	Width                                            float64 // % of the track
	Mark                                             float64 // of the limit, % of the track; 0: none
}

// pageTable is cells by row; the first column heads its row.
type pageTable struct {
	Name    string
	Label   string // unique on the page
	Caption string
	Heads   []string
	Rows    [][]string
	Words   bool // cells are text, not numbers
}
