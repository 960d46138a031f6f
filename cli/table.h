#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace fcap::cli {

/// Rows of equally many cells, the first of them the headings, in columns.
void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

}  // namespace fcap::cli
