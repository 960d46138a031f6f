#include <iostream>

#include "cli/commands.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  return fcap::cli::run(argc, argv, {.in = std::cin, .out = std::cout, .err = std::cerr});
}
