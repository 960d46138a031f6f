#include <fmt/core.h>

#include <fcap/version.h>

int main() {
  fmt::print("fcap-updater\n");
  return 0;
}
