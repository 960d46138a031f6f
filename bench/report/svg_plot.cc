#include "report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace fcap::bench {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 340;
constexpr double kLeft = 76;
constexpr double kRight = 16;
constexpr double kTop = 14;
constexpr double kBottom = 64;
constexpr std::size_t kColours = 6;  // .s0 to .s5 of the page

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

/// Values to places on the page.
class Axis {
 public:
  Axis(const Json& axis, double first, double last)
      : title_(axis.value("title", "")),
        logarithmic_(axis.value("logarithmic", false)),
        first_(first),
        last_(last) {}

  void include(double value) {
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }

  /// Rounds the range out to whole ticks; a linear axis begins at zero.
  void settle() {
    if (low_ > high_) low_ = high_ = 1;
    if (logarithmic_) {
      low_ = std::pow(10, std::floor(std::log10(low_)));
      high_ = std::pow(10, std::ceil(std::log10(high_)));
      if (low_ == high_) high_ *= 10;
      const auto decades = std::lround(std::log10(high_ / low_));
      for (long i = 0; i <= decades; ++i) ticks_.push_back(low_ * std::pow(10, i));
      return;
    }
    low_ = std::min(low_, 0.0);
    if (high_ == low_) high_ = low_ + 1;
    const double rough = (high_ - low_) / 6;
    const double decade = std::pow(10, std::floor(std::log10(rough)));
    const double step = decade * (rough / decade < 1.5 ? 1 : rough / decade < 3.5 ? 2 : 5);
    high_ = std::ceil(high_ / step - 1e-9) * step;
    const auto steps = std::lround((high_ - low_) / step);
    for (long i = 0; i <= steps; ++i) ticks_.push_back(low_ + static_cast<double>(i) * step);
  }

  [[nodiscard]] double place(double value) const {
    const double share = logarithmic_ ? std::log10(value / low_) / std::log10(high_ / low_)
                                      : (value - low_) / (high_ - low_);
    return first_ + share * (last_ - first_);
  }
  /// Whether the axis has a place for it.
  [[nodiscard]] bool shows(double value) const {
    return std::isfinite(value) && (!logarithmic_ || value > 0);
  }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }
  [[nodiscard]] const std::string& title() const { return title_; }

 private:
  std::string title_;
  bool logarithmic_;
  double first_;
  double last_;
  double low_ = std::numeric_limits<double>::max();
  double high_ = std::numeric_limits<double>::lowest();
  std::vector<double> ticks_;
};

std::string frame(const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.ticks()) {
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", kLeft,
                       kWidth - kRight, y.place(tick), y.place(tick));
    svg += fmt::format(R"(<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{}</text>)",
                       kLeft - 6, y.place(tick) + 4, short_number(tick));
  }
  for (const double tick : x.ticks()) {
    svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)",
                       x.place(tick), kTop, kHeight - kBottom);
    svg += fmt::format(R"(<text class="tick" text-anchor="middle" x="{:.1f}" y="{}">{}</text>)",
                       x.place(tick), kHeight - kBottom + 16, short_number(tick));
  }
  svg +=
      fmt::format(R"(<text class="axis" text-anchor="middle" x="{}" y="{}">{}</text>)",
                  (kLeft + kWidth - kRight) / 2, kHeight - kBottom + 34, html_escaped(x.title()));
  svg += fmt::format(
      R"svg(<text class="axis" text-anchor="middle" transform="translate(16 {}) rotate(-90)">{}</text>)svg",
      (kTop + kHeight - kBottom) / 2, html_escaped(y.title()));
  return svg;
}

std::string line(const Json& series, std::size_t colour, const Axis& x, const Axis& y) {
  std::string places;
  std::string dots;
  for (const Json& point : series["points"]) {
    const double at = point[0].get<double>();
    const double value = point[1].get<double>();
    if (!x.shows(at) || !y.shows(value)) continue;
    places += fmt::format("{:.1f},{:.1f} ", x.place(at), y.place(value));
    dots += fmt::format(
        R"(<circle class="s{}" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}: {:g}, {:g}</title></circle>)",
        colour, x.place(at), y.place(value), html_escaped(series.value("title", "")), at, value);
  }
  return fmt::format(R"(<polyline class="s{}" points="{}"/>)", colour, places) + dots;
}

std::string legend(const Json& all) {
  std::string svg;
  double left = kLeft;
  std::size_t colour = 0;
  for (const Json& series : all) {
    const std::string title = series.value("title", "");
    svg += fmt::format(R"(<rect class="s{}" x="{}" y="{}" width="12" height="12"/>)",
                       colour++ % kColours, left, kHeight - 18);
    svg += fmt::format(R"(<text class="axis" x="{}" y="{}">{}</text>)", left + 17, kHeight - 8,
                       html_escaped(title));
    left += 40 + 7.2 * static_cast<double>(title.size());
  }
  return svg;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '&') {
      out += "&amp;";
    } else if (byte == '<') {
      out += "&lt;";
    } else if (byte == '>') {
      out += "&gt;";
    } else if (byte == '"') {
      out += "&quot;";
    } else {
      out += byte;
    }
  }
  return out;
}

std::string svg_plot(const Json& plot) {
  Axis x(plot["x"], kLeft, kWidth - kRight);
  Axis y(plot["y"], kHeight - kBottom, kTop);
  for (const Json& series : plot["series"]) {
    for (const Json& point : series["points"]) {
      const double at = point[0].get<double>();
      const double value = point[1].get<double>();
      if (!x.shows(at) || !y.shows(value)) continue;
      x.include(at);
      y.include(value);
    }
  }
  x.settle();
  y.settle();
  std::string svg = fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth,
                                kHeight, html_escaped(plot.value("title", "")));
  svg += frame(x, y);
  std::size_t colour = 0;
  for (const Json& series : plot["series"]) svg += line(series, colour++ % kColours, x, y);
  return svg + legend(plot["series"]) + "</svg>\n";
}

}  // namespace fcap::bench
