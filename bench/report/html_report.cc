#include "report/html_report.h"

#include <fmt/format.h>

#include "report/svg_plot.h"
#include "report/targets.h"

namespace fcap::bench {
namespace {

constexpr std::string_view kHead = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>fcap bench</title><style>
:root{color-scheme:light dark;--ink:#1c2127;--soft:#5b6570;--line:#d9dee3;--paper:#fff;
--good:#1a7f37;--bad:#b42318}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaee;--soft:#9aa5b1;--line:#38414a;
--paper:#15191d;--good:#4ac26b;--bad:#ff7b72}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.15rem;margin:2.2rem 0 .3rem}p{margin:.2rem 0 .6rem}
.note{color:var(--soft)}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
.reached{color:var(--good)}.missed{color:var(--bad)}
svg{width:100%;height:auto;margin:.6rem 0}.grid{stroke:var(--line)}
.tick,.axis{font-size:12px;fill:var(--soft)}polyline{fill:none;stroke-width:2}
.s0{stroke:#2f6fde;fill:#2f6fde}.s1{stroke:#d9730d;fill:#d9730d}.s2{stroke:#2d9d78;fill:#2d9d78}
.s3{stroke:#b5499b;fill:#b5499b}.s4{stroke:#8a6d3b;fill:#8a6d3b}.s5{stroke:#6b7280;fill:#6b7280}
polyline.s0,polyline.s1,polyline.s2,polyline.s3,polyline.s4,polyline.s5{fill:none}
</style></head><body>
<h1>fcap bench</h1>
)html";

std::string about_html(const Json& about) {
  std::string html = "<p class=\"note\">";
  for (const auto& [key, value] : about.items()) {
    html += fmt::format("{}: {}<br>", html_escaped(key),
                        html_escaped(value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return html + "</p>\n";
}

std::string targets_html(const Json& document) {
  std::string html =
      "<h2>Numbers to reach</h2>\n<div class=\"scroll\"><table><tr><th></th><th>measured</th>"
      "<th>target</th><th></th></tr>\n";
  for (const Target& target : targets()) {
    const std::string key(target.key);
    const Json& value = document[key];
    const bool reached = value.is_number() && target.reached_by(value.get<double>());
    const std::string verdict = value.is_number() ? (reached ? "reached" : "missed")
                                                  : document["missing"].value(key, "not measured");
    html += fmt::format(
        "<tr><td>{}</td><td>{} {}</td><td>{} {:g} {}</td><td class=\"{}\">{}</td></tr>\n",
        html_escaped(target.what), number_text(value, target.digits), target.unit,
        target.at_least ? "≥" : "≤", target.bound, target.unit,
        !value.is_number() ? "note" : verdict, html_escaped(verdict));
  }
  return html + "</table></div>\n";
}

std::string table_html(const Json& table) {
  std::string html = fmt::format("<h2>{}</h2>\n<p class=\"note\">{}</p>\n",
                                 html_escaped(table["title"].get<std::string>()),
                                 html_escaped(table.value("note", "")));
  html += "<div class=\"scroll\"><table><tr><th></th>";
  for (const Json& column : table["columns"]) {
    html += fmt::format("<th>{}</th>", html_escaped(column["title"].get<std::string>()));
  }
  html += "</tr>\n";
  for (const Json& row : table["rows"]) {
    html += fmt::format("<tr><td>{}</td>", html_escaped(row["title"].get<std::string>()));
    for (const Json& column : table["columns"]) {
      const Json value = row.value(column["key"].get<std::string>(), Json());
      html += fmt::format("<td>{}</td>", number_text(value, column.value("digits", 2)));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string html_report(const Json& document) {
  std::string html(kHead);
  html += about_html(document["about"]);
  html += targets_html(document);
  // A plot stands below the table of its name.
  for (const auto& [id, table] : document["tables"].items()) {
    html += table_html(table);
    if (document["plots"].contains(id)) html += svg_plot(document["plots"][id]);
  }
  for (const auto& [id, plot] : document["plots"].items()) {
    if (document["tables"].contains(id)) continue;
    html += fmt::format("<h2>{}</h2>\n", html_escaped(plot.value("title", id))) + svg_plot(plot);
  }
  return html + "</body></html>\n";
}

}  // namespace fcap::bench
