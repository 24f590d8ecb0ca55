#include "report/svg_chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

constexpr double kWidth = 720, kHeight = 360, kLeft = 70, kRight = 20, kTop = 16, kBottom = 46;
constexpr double kLabelHeight = 14;
constexpr int kLineColours = 8;  // classes line0 .. line7 in the page's style sheet

// Maps values of one axis to pixels.
class Scale {
 public:
  Scale(const Axis& axis, double low, double high, double from, double to)
      : logarithmic_(axis.logarithmic), from_(from), to_(to) {
    low_ = transform(low);
    high_ = transform(high);
    if (!(high_ > low_)) high_ = low_ + 1, low_ -= 1;
    const double margin = (high_ - low_) * 0.06;
    low_ -= margin;
    high_ += margin;
  }

  double pixel(double value) const {
    return from_ + (transform(value) - low_) / (high_ - low_) * (to_ - from_);
  }

  // Round values inside the range: 1-2-5 steps, or decades.
  std::vector<double> ticks() const {
    std::vector<double> values;
    const double span = high_ - low_;
    double step = logarithmic_ ? 1 : std::pow(10, std::floor(std::log10(span / 4)));
    if (!logarithmic_) step *= span / step > 20 ? 5 : span / step > 8 ? 2 : 1;
    for (double t = std::ceil(low_ / step) * step; t <= high_ + step * 1e-9 && values.size() < 24;
         t += step) {
      values.push_back(logarithmic_ ? std::pow(10, t) : (std::abs(t) < step * 1e-9 ? 0 : t));
    }
    return values;
  }

 private:
  double transform(double value) const { return logarithmic_ ? std::log10(std::max(value, 1e-12)) : value; }

  bool logarithmic_;
  double from_, to_;
  double low_ = 0, high_ = 1;
};

std::string frame(const Axis& x_axis, const Scale& x, const Axis& y_axis, const Scale& y) {
  std::string svg;
  for (const double tick : x.ticks()) {
    svg += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>",
                       x.pixel(tick), kTop, kHeight - kBottom);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>", x.pixel(tick),
                       kHeight - kBottom + 16, tick);
  }
  for (const double tick : y.ticks()) {
    svg += fmt::format("<line class=\"grid\" x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>",
                       y.pixel(tick), kLeft, kWidth - kRight);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>", kLeft - 6,
                       y.pixel(tick) + 4, tick);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                     (kLeft + kWidth - kRight) / 2, kHeight - 8, escape_html(x_axis.title));
  svg += fmt::format("<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                     (kTop + kHeight - kBottom) / 2, escape_html(y_axis.title));
  return svg;
}

std::string wrap(const std::string& body) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">{}</svg>", kWidth, kHeight, body);
}

bool drawable(const Axis& axis, double value) {
  return std::isfinite(value) && (!axis.logarithmic || value > 0);
}

Scale make_scale(const Axis& axis, std::vector<double> values, double from, double to) {
  std::erase_if(values, [&](double value) { return !drawable(axis, value); });
  if (values.empty()) values = {1};
  const auto [low, high] = std::ranges::minmax(values);
  return {axis, low, high, from, to};
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string scatter_chart(const std::vector<ChartPoint>& all_points, const Axis& x_axis, const Axis& y_axis) {
  std::vector<ChartPoint> points;
  std::vector<double> xs, ys;
  for (const ChartPoint& point : all_points) {
    if (!drawable(x_axis, point.x) || !drawable(y_axis, point.y)) continue;
    points.push_back(point);
    xs.push_back(point.x);
    ys.push_back(point.y);
  }
  const Scale x = make_scale(x_axis, xs, kLeft, kWidth - kRight);
  const Scale y = make_scale(y_axis, ys, kHeight - kBottom, kTop);
  std::string svg = frame(x_axis, x, y_axis, y);
  std::vector<double> label_rows;  // heights that are taken
  for (const ChartPoint& point : points) {
    const double px = x.pixel(point.x), py = y.pixel(point.y);
    const bool to_left = px > kWidth * 0.6;
    double row = py - 6;
    while (
        std::ranges::any_of(label_rows, [&](double taken) { return std::abs(taken - row) < kLabelHeight; }))
      row -= 3;
    label_rows.push_back(row);
    svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\"/>", point.css_class, px, py);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>",
                       px + (to_left ? -10 : 10), row, to_left ? "end" : "start", escape_html(point.label));
  }
  return wrap(svg);
}

std::string line_chart(const std::vector<ChartLine>& lines, const Axis& x_axis, const Axis& y_axis) {
  std::vector<double> xs, ys;
  for (const ChartLine& line : lines) {
    xs.insert(xs.end(), line.x.begin(), line.x.end());
    ys.insert(ys.end(), line.y.begin(), line.y.end());
  }
  const Scale x = make_scale(x_axis, xs, kLeft, kWidth - kRight);
  const Scale y = make_scale(y_axis, ys, kHeight - kBottom, kTop);
  std::string svg = frame(x_axis, x, y_axis, y);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string path;
    for (size_t k = 0; k < lines[i].x.size(); ++k) {
      if (!drawable(x_axis, lines[i].x[k]) || !drawable(y_axis, lines[i].y[k])) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x.pixel(lines[i].x[k]),
                          y.pixel(lines[i].y[k]));
    }
    const auto colour = i % kLineColours;
    svg += fmt::format("<path class=\"line{}\" d=\"{}\"/>", colour, path);
    svg += fmt::format("<text class=\"legend{}\" x=\"{}\" y=\"{}\">{}</text>", colour, kLeft + 12,
                       kTop + 14 + 15 * i, escape_html(lines[i].label));
  }
  return wrap(svg);
}

}  // namespace assay
