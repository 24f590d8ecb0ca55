// Small charts as inline SVG: points with labels, and lines. Axes are linear or logarithmic with round ticks.
// Internal to report. Pure.
#pragma once

#include <string>
#include <vector>

namespace assay {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string label;
  std::string css_class;  // "chosen", "holds", "broken"
};

struct ChartLine {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;
};

struct Axis {
  std::string title;  // with the unit
  bool logarithmic = false;
};

std::string scatter_chart(const std::vector<ChartPoint>& points, const Axis& x, const Axis& y);
std::string line_chart(const std::vector<ChartLine>& lines, const Axis& x, const Axis& y);

// Text made safe for HTML and SVG.
std::string escape_html(std::string_view text);

}  // namespace assay
