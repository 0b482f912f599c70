'use strict';
(() => {
  const root = document.documentElement;
  const css = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
  const charts = []; // {at, option}: drawn again when colours or the choice change
  const dashes = ['solid', 'dashed', 'dotted', 'dashDot'];

  const time = (s) => {
    for (const [unit, size] of [['s', 1], ['ms', 1e-3], ['µs', 1e-6]]) if (s >= size) return +(s / size).toPrecision(4) + ' ' + unit;
    return +(s / 1e-9).toPrecision(4) + ' ns';
  };
  const bytes = (n) => {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let u = 0;
    while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
    return +n.toPrecision(4) + ' ' + units[u];
  };
  const escape = (s) => String(s).replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';');
  const colour = (scope) => css(scope) || css('pairs');
  const base = () => ({
    animation: false, textStyle: { fontFamily: 'inherit', color: css('ink') }, aria: { enabled: false },
    tooltip: { backgroundColor: css('card'), borderColor: css('line'), textStyle: { color: css('ink') }, confine: true },
  });
  const axis = (more) => Object.assign({
    axisLine: { lineStyle: { color: css('soft') } }, axisLabel: { color: css('soft'), hideOverlap: true },
    splitLine: { lineStyle: { color: css('line') } }, nameTextStyle: { color: css('soft') },
  }, more);

  // A legend wraps; the chart begins below its last line.
  const names = (series) => [...new Set(series.map((s) => s.name))];
  const legend = (at, series) => ({ type: 'plain', top: 0, left: 0, itemGap: 12, textStyle: { color: css('ink'), fontSize: 12 }, data: names(series) });
  const legendHeight = (at, series) => {
    let lines = 1, x = 0;
    for (const n of names(series)) {
      const w = 50 + 7 * n.length;
      if (x + w > at.clientWidth && x > 0) { lines++; x = 0; }
      x += w;
    }
    return 12 + 24 * lines;
  };

  // sizes is busbw or time against size, with intervals and limits.
  function sizes(at, data, y) {
    const bus = y === 'bus', used = {}, series = [];
    const seen = data.series.flatMap((c) => c.points.map((p) => p.bytes)).filter((n) => n > 0);
    for (const c of data.series) {
      const n = used[c.scope] = (used[c.scope] ?? -1) + 1;
      const style = { color: colour(c.scope), type: dashes[n % dashes.length], width: 2 };
      const points = c.points.filter((p) => p.bytes > 0 && (bus ? p.bus !== null : true));
      if (!points.length) continue;
      series.push({
        name: c.name, type: 'line', symbolSize: 8, symbol: ['circle', 'rect', 'triangle', 'diamond'][n % 4], lineStyle: style, itemStyle: { color: style.color },
        data: points.map((p) => ({ value: [p.bytes, bus ? p.bus : p.time], text: p.text, symbol: p.unsure ? 'emptyCircle' : undefined })),
      });
      series.push({ // intervals
        name: c.name, type: 'custom', silent: true, tooltip: { show: false }, encode: { x: 0, y: [1, 2] },
        data: points.filter((p) => p.range && (!bus || p.busLo > 0)).map((p) => bus ? [p.bytes, p.busLo, p.busHi] : [p.bytes, p.range[0], p.range[1]]),
        renderItem: (params, api) => {
          const lo = api.coord([api.value(0), api.value(1)]), hi = api.coord([api.value(0), api.value(2)]);
          const line = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: style.color, lineWidth: 1.5 } });
          return { type: 'group', children: [line(lo[0], lo[1], hi[0], hi[1]), line(lo[0] - 4, lo[1], lo[0] + 4, lo[1]), line(hi[0] - 4, hi[1], hi[0] + 4, hi[1])] };
        },
      });
      if (bus && c.limits.length && n === 0) {
        series.push({ name: c.scope + ' limit', type: 'line', showSymbol: false, lineStyle: { color: style.color, type: 'dashed', width: 1, opacity: 0.8 }, itemStyle: { color: style.color }, data: c.limits.filter((l) => l[0] > 0), tooltip: { show: false } });
      }
    }
    return Object.assign(base(), {
      tooltip: Object.assign(base().tooltip, { trigger: 'item', formatter: (p) => escape(p.data && p.data.text || p.seriesName) }),
      legend: legend(at, series),
      grid: { left: 72, right: 24, top: legendHeight(at, series), bottom: 44 },
      xAxis: axis({ type: 'log', logBase: 2, min: Math.min(...seen) / 2, max: Math.max(...seen) * 2, name: 'size', nameLocation: 'middle', nameGap: 28, axisLabel: { color: css('soft'), formatter: bytes, hideOverlap: true } }),
      yAxis: axis({ type: 'log', name: bus ? 'busbw, GB/s' : 'time', nameLocation: 'middle', nameGap: 56, axisLabel: { color: css('soft'), formatter: bus ? (v) => +v.toPrecision(3) : time } }),
      series,
    });
  }

  function dist(data, size) {
    const rows = (data.dist.find((d) => d.size === size) || { rows: [] }).rows;
    const names = rows.map((r) => r.name);
    const all = rows.flatMap((r) => [...r.box, ...r.dots]).filter((v) => v > 0);
    return Object.assign(base(), {
      tooltip: Object.assign(base().tooltip, { trigger: 'item', formatter: (p) => {
        const r = rows[Array.isArray(p.value) && p.seriesType === 'scatter' ? p.value[1] : p.dataIndex];
        if (p.seriesType === 'scatter') return escape(r.name) + ': ' + time(p.value[0]);
        return escape(r.name) + ', ' + r.n + ' samples<br>median ' + time(r.box[2]) + '<br>quartiles ' + time(r.box[1]) + ' to ' + time(r.box[3]) + '<br>whiskers ' + time(r.box[0]) + ' to ' + time(r.box[4]);
      } }),
      grid: { left: 16 + 7 * Math.max(...names.map((n) => n.length)), right: 24, top: 10, bottom: 30 },
      xAxis: axis({ type: 'log', min: Math.min(...all) * 0.9, max: Math.max(...all) * 1.1, axisLabel: { color: css('soft'), formatter: time, hideOverlap: true } }),
      yAxis: axis({ type: 'category', data: names, inverse: true, axisLabel: { color: css('ink') } }),
      series: [
        { type: 'boxplot', data: rows.map((r) => ({ value: r.box, itemStyle: { color: css('card'), borderColor: colour(r.name.split(' ')[0]), borderWidth: 1.5 } })), boxWidth: [8, 28] },
        { type: 'scatter', symbolSize: 4, data: rows.flatMap((r, i) => r.dots.map((v) => ({ value: [v, i], itemStyle: { color: colour(r.name.split(' ')[0]), opacity: 0.6 } }))) },
      ],
    });
  }

  function ranks(at, data, size) {
    const rows = (data.dist.find((d) => d.size === size) || { rows: [] }).rows.filter((r) => r.ranks.length);
    const most = Math.max(1, ...rows.map((r) => r.ranks.length));
    const series = rows.map((r, i) => ({ name: r.name, type: most > 64 ? 'line' : 'bar', showSymbol: false, data: r.ranks, itemStyle: { color: colour(r.name.split(' ')[0]), opacity: 1 - 0.25 * (i % 3), borderColor: css('card'), borderWidth: most > 64 ? 0 : 1 } }));
    return Object.assign(base(), {
      tooltip: Object.assign(base().tooltip, { trigger: 'item', formatter: (p) => escape(p.seriesName) + ', rank ' + p.dataIndex + ': ' + time(p.value) }),
      legend: legend(at, series),
      grid: { left: 8, right: 16, top: legendHeight(at, series), bottom: 30, containLabel: true },
      xAxis: axis({ type: 'category', name: 'rank', nameLocation: 'middle', nameGap: 22, data: [...Array(most).keys()] }),
      yAxis: axis({ type: 'value', axisLabel: { color: css('soft'), formatter: time } }),
      series,
    });
  }

  function pairs(data, index) {
    const g = data.pairs[index], v = g.cells.map((c) => c[2]);
    return Object.assign(base(), {
      tooltip: Object.assign(base().tooltip, { formatter: (p) => escape(g.hosts[p.value[1]]) + ' → ' + escape(g.hosts[p.value[0]]) + ': ' + p.value[2] + ' GB/s' }),
      grid: { left: 8, right: 90, top: 10, bottom: 10, containLabel: true },
      xAxis: axis({ type: 'category', data: g.hosts, axisLabel: { color: css('ink'), rotate: g.hosts.length > 6 ? 60 : 0 } }),
      yAxis: axis({ type: 'category', data: g.hosts, inverse: true, axisLabel: { color: css('ink') } }),
      visualMap: { min: Math.min(...v), max: Math.max(...v), calculable: false, right: 0, top: 'middle', precision: 2, inRange: { color: [css('heat-low'), css('heat-mid'), css('heat-high')] }, textStyle: { color: css('ink') } },
      series: [{ type: 'heatmap', data: g.cells, label: { show: g.hosts.length <= 12, formatter: (p) => p.value[2], color: css('ink'), textBorderColor: css('card'), textBorderWidth: 2 }, itemStyle: { borderColor: css('card'), borderWidth: 1 } }],
    });
  }

  for (const group of document.querySelectorAll('section.group')) {
    const text = group.querySelector('script.data');
    if (!text) continue;
    const data = JSON.parse(text.textContent);
    const size = () => (group.querySelector('select') || {}).value;
    const y = () => (group.querySelector('.show input:checked') || { value: 'bus' }).value;
    const add = (selector, option) => group.querySelectorAll(selector).forEach((at) => charts.push({ at, group, option: () => option(at) }));
    add('.chart.sizes', (at) => sizes(at, data, y()));
    add('.chart.dist', () => dist(data, size()));
    add('.chart.ranks', (at) => ranks(at, data, size()));
    add('.chart.pairs', (at) => pairs(data, +at.dataset.grid));
    group.addEventListener('change', () => charts.filter((c) => c.group === group && c.chart).forEach(draw));
    const select = group.querySelector('select');
    if (select) select.value = data.dist[data.dist.length - 1].size;
  }

  function draw(c) {
    c.chart = c.chart || echarts.init(c.at, null, { renderer: 'svg' });
    c.chart.setOption(c.option(), true);
  }
  // A chart is drawn when it comes near, so that a long page opens at once.
  const near = new IntersectionObserver((seen) => {
    for (const e of seen) {
      const c = charts.find((c) => c.at === e.target);
      if (e.isIntersecting && c && !c.chart) draw(c);
    }
  }, { rootMargin: '600px' });
  charts.forEach((c) => near.observe(c.at));
  new ResizeObserver(() => charts.forEach((c) => c.chart && c.chart.resize())).observe(document.body);

  const redraw = () => charts.forEach((c) => c.chart && draw(c));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  document.querySelector('.theme').addEventListener('change', (e) => {
    if (e.target.value === 'auto') delete root.dataset.theme; else root.dataset.theme = e.target.value;
    redraw();
  });
  let before;
  addEventListener('beforeprint', () => {
    before = root.dataset.theme;
    root.dataset.theme = 'light';
    charts.forEach((c) => { draw(c); c.chart.resize(); });
  });
  addEventListener('afterprint', () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    redraw();
  });
})();
