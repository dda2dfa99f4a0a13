// Draws each `figure[data-chart]` with uPlot: stacked bars of the amounts in its own table, in the colours of its legend.
// Arrow keys, Home and End move through the bars, as the pointer does; a screen reader hears each bar.
"use strict";
(() => {
  const HEIGHT = 260, FILL = 0.8, PAPER_WIDTH = 640;

  const root = document.documentElement;

  function amountsOf(table) {
    const rows = [...table.tBodies[0].rows];
    const columns = table.tHead.rows[0].cells.length - 1;
    const amounts = Array.from({ length: columns }, (_, column) =>
      rows.map((row) => Number(row.cells[column + 1].querySelector("data").value)));
    const total = amounts.pop();
    return { labels: rows.map((row) => row.cells[0].textContent.trim()), amounts, total };
  }

  // What is negative, such as a bill below the prices, is stacked below zero.
  function stacked(amounts) {
    const above = amounts[0].map(() => 0), below = [...above];
    return amounts.map((series) => series.map((amount, place) => {
      const sums = amount < 0 ? below : above;
      sums[place] += amount;
      return sums[place] || null;  // no bar, and no line where one would be
    }));
  }

  function draw(figure) {
    const plot = figure.querySelector(".plot"), readout = figure.querySelector(".readout");
    const swatches = [...figure.querySelectorAll(".swatch")];
    const names = swatches.map((swatch) => swatch.parentElement.textContent.trim());
    const { labels, amounts, total } = amountsOf(figure.querySelector("table"));
    const tops = stacked(amounts);
    const places = labels.map((_, place) => place);
    let chart = null, shown = labels.length - 1;

    function colour(element, property = "backgroundColor") {
      return getComputedStyle(element)[property];
    }
    function width() {
      return Math.max(200, plot.clientWidth);
    }
    function show(place) {
      shown = Math.min(labels.length - 1, Math.max(0, place));
      const parts = names
        .map((name, series) => [name, amounts[series][shown]])
        .filter(([, amount]) => amount)
        .map(([name, amount]) => `${name} ${amount.toFixed(2)}`);
      const words = `${labels[shown]}: ${total[shown].toFixed(2)}${parts.length ? ` (${parts.join(", ")})` : ""}`;
      readout.textContent = words;
      plot.setAttribute("aria-valuenow", shown + 1);
      plot.setAttribute("aria-valuetext", words);
    }
    function options(wide) {
      const ink = colour(readout, "color"), paper = colour(figure), line = colour(plot, "borderTopColor");
      const bars = uPlot.paths.bars({ size: [FILL, 60] });
      // The longest bars first, so that each next one covers all but its own part.
      const series = names.map((name, place) => ({
        label: name, fill: colour(swatches[place]), stroke: paper, width: 1, paths: bars, points: { show: false },
      })).reverse();
      return {
        width: wide,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: {
          x: { time: false, range: [-0.5, labels.length - 0.5] },
          y: { range: (_, low, high) => uPlot.rangeNum(Math.min(0, low), Math.max(high, 0.01), 0.05, true) },
        },
        axes: [
          {
            stroke: ink,
            grid: { show: false },
            ticks: { show: false },
            space: 90,
            values: (_, splits) => splits.map((split) => (Number.isInteger(split) ? labels[split] ?? "" : "")),
          },
          { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, size: 64 },
        ],
        series: [{}, ...series],
        hooks: {
          setCursor: [(u) => {
            if (u.cursor.left >= 0) show(Math.round(u.posToVal(u.cursor.left, "x")));
          }],
        },
      };
    }
    function paint(wide = width()) {
      chart?.destroy();
      chart = new uPlot(options(wide), [places, ...[...tops].reverse()], plot);
      for (const canvas of plot.querySelectorAll("canvas")) canvas.setAttribute("aria-hidden", "true");
    }

    plot.hidden = readout.hidden = false;
    paint();
    show(shown);
    plot.addEventListener("keydown", (event) => {
      const next = { ArrowLeft: shown - 1, ArrowDown: shown - 1, ArrowRight: shown + 1, ArrowUp: shown + 1, Home: 0, End: labels.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      show(next);
      chart.setCursor({ left: chart.valToPos(shown, "x"), top: 0 }, false);
    });
    new ResizeObserver(() => {
      if (chart.width !== width()) chart.setSize({ width: width(), height: HEIGHT });
    }).observe(plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint());
    let wasOpen = false;
    const details = figure.querySelector("details");
    addEventListener("beforeprint", () => {
      wasOpen = details.open;
      details.open = true;
      root.style.colorScheme = "light";
      paint(PAPER_WIDTH);
    });
    addEventListener("afterprint", () => {
      details.open = wasOpen;
      root.style.colorScheme = "";
      paint();
    });
  }

  for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure);
})();
