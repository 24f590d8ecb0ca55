// The charts of the page: ECharts, which the server carries itself, or nothing where it was built without.

const echarts = await import("/web/echarts.js").catch(() => null);
export const hasCharts = echarts !== null;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const milliseconds = (seconds) => seconds >= 1 ? `${number.format(seconds)} s` : `${number.format(seconds * 1000)} ms`;
export const percent = (ratio) => `${number.format(ratio * 100)} %`;
export const plain = (value) => number.format(value);

const clock = (time) => new Date(time).toLocaleTimeString("en-GB");
const charts = [];
const SHORTEST = 60000; // milliseconds that a chart spans at least

// A line chart of `series`: [{name, column, area}], values in the unit that `format` writes.
export function lineChart(id, series, format, { max, interval } = {}) {
  if (!hasCharts) return { update() {} };
  const chart = echarts.init(document.getElementById(id), null, { renderer: "canvas" });
  const style = () => chart.setOption(options(series, format, max, interval));
  style();
  charts.push({ chart, style });
  return {
    update(samples) {
      if (samples.length === 0) return;
      const end = samples[samples.length - 1].time * 1000;
      const start = Math.min(samples[0].time * 1000, end - SHORTEST); // a young server's samples fill the chart
      chart.setOption({
        xAxis: { min: start, max: end },
        series: series.map(({ column }) => ({ data: samples.map((sample) => [sample.time * 1000, sample[column]]) })),
      });
    },
  };
}

function options(series, format, max, interval) {
  const colours = ["--series-1", "--series-2", "--series-3"].map(css);
  const text = { color: css("--muted"), fontSize: 12, fontFamily: getComputedStyle(document.body).fontFamily };
  return {
    animation: false,
    color: colours,
    textStyle: { fontFamily: text.fontFamily },
    grid: { left: 4, right: 10, top: 28, bottom: 2, containLabel: true },
    legend: { show: series.length > 1, top: 0, right: 0, itemWidth: 14, itemHeight: 3, icon: "rect", textStyle: text },
    tooltip: {
      trigger: "axis", renderMode: "richText", confine: true, backgroundColor: css("--card"), borderColor: css("--line"),
      textStyle: { ...text, color: css("--text") },
      formatter: (points) => [clock(points[0].value[0]), ...points.filter((p) => p.value[1] !== null && p.value[1] !== undefined)
        .map((p) => `${p.seriesName}  ${format(p.value[1])}`)].join("\n"),
    },
    xAxis: {
      type: "time", axisLine: { lineStyle: { color: css("--line") } }, axisTick: { show: false },
      axisLabel: { ...text, hideOverlap: true, showMinLabel: false, formatter: "{HH}:{mm}:{ss}" }, splitLine: { show: false },
    },
    yAxis: {
      type: "value", min: 0, max, interval, splitNumber: 3, axisLabel: { ...text, formatter: format },
      splitLine: { lineStyle: { color: css("--line") } },
    },
    series: series.map(({ name }, i) => ({
      name, type: "line", showSymbol: false, lineStyle: { width: 1.8 },
      areaStyle: series.length === 1 ? { opacity: 0.14 } : undefined, emphasis: { disabled: true }, z: 10 - i,
    })),
  };
}

export function onThemeChange(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const { style } of charts) style();
    redraw();
  });
  addEventListener("resize", () => {
    for (const { chart } of charts) chart.resize();
    redraw();
  });
}

// The map of KV pages: one square a cell, as many in a row as fit.
export function drawMap(canvas, cells) {
  const width = canvas.clientWidth;
  if (width === 0 || cells.length === 0) return;
  const gap = cells.length > 1500 ? 1 : 2;
  const size = Math.max(4, Math.min(18, Math.floor(Math.sqrt((width * 170) / cells.length)) - gap));
  const columns = Math.max(1, Math.floor((width + gap) / (size + gap)));
  const rows = Math.ceil(cells.length / columns);
  const height = rows * (size + gap) - gap;
  const scale = devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const colour = { f: css("--free"), c: css("--cached"), u: css("--used"), s: css("--shared") };
  for (let i = 0; i < cells.length; i++) {
    pen.fillStyle = colour[cells[i]];
    pen.fillRect((i % columns) * (size + gap), Math.floor(i / columns) * (size + gap), size, size);
  }
}
