// bench_report: merges what the parts of the benches wrote, prints the tables, and writes the whole
// as JSON and as a page.
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "report/capacity.h"
#include "report/document.h"
#include "report/html_report.h"
#include "report/text_report.h"

namespace fcap::bench {
namespace {

struct Flags {
  std::string about;
  std::vector<std::string> parts;
  std::vector<std::string> not_run;
  std::string json;
  std::string html;
};

Json read_json(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  return Json::parse(in);
}

void write_file(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

int report(const Flags& flags) {
  const auto split = [](const std::string& word) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos) throw std::runtime_error(word + ": PART=… is expected");
    return std::pair{word.substr(0, at), word.substr(at + 1)};
  };
  std::vector<Json> parts;
  for (const std::string& word : flags.parts) {
    const auto [name, file] = split(word);
    parts.push_back(read_json(file));
    parts.back()["part"] = name;
  }
  std::map<std::string, std::string> not_run;
  for (const std::string& word : flags.not_run) not_run.insert(split(word));
  Json document = merge_parts(read_json(flags.about), parts, not_run);
  add_capacity(document);
  write_file(flags.json, document.dump(2) + "\n");
  write_file(flags.html, html_report(document));
  std::fputs(text_report(document).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::Flags flags;
  CLI::App app("One report of all parts.", "bench_report");
  app.add_option("--about", flags.about, "JSON about the machine and the run")->required();
  app.add_option("--part", flags.parts, "PART=FILE: what a part wrote");
  app.add_option("--not-run", flags.not_run, "PART=REASON");
  app.add_option("--json", flags.json, "Where the merged JSON goes");
  app.add_option("--html", flags.html, "Where the page goes");
  CLI11_PARSE(app, argc, argv);
  try {
    return fcap::bench::report(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_report: %s\n", error.what());
    return 1;
  }
}
