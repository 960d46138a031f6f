#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "updater/settings/settings.h"

namespace fcap::updater {

/// The kinds of values a field may have. Each knows where the value stands in a Settings.
struct IntegerKind {
  std::int64_t& (*at)(Settings&);
  std::int64_t min;
  std::int64_t max;
  bool bytes = false;  ///< may be written "64KiB"
};
struct ShareKind {
  double& (*at)(Settings&);
  double min;
  double max;
};
struct DurationKind {
  milliseconds& (*at)(Settings&);
  milliseconds min;
  milliseconds max;
};
struct FlagKind {
  bool& (*at)(Settings&);
};
struct TextKind {
  std::string& (*at)(Settings&);
  bool required;
  std::string_view when_several = {};  ///< said where a list is given; empty: as of any other
};
/// Never in the configuration file or on the command line; "<name>_file" names a file with it.
struct SecretKind {
  std::string& (*at)(Settings&);
  std::string_view credential;  ///< its name in $CREDENTIALS_DIRECTORY
};
struct ListKind {
  std::vector<std::string>& (*at)(Settings&);
  std::size_t items_min;
};
struct MapKind {
  std::map<std::string, std::string>& (*at)(Settings&);
};
struct ChoiceKind {
  std::span<const std::string_view> words;
  std::size_t (*get)(const Settings&);
  void (*set)(Settings&, std::size_t);
};

/// One setting, "section.name".
struct Field {
  std::string_view name;
  std::variant<IntegerKind, ShareKind, DurationKind, FlagKind, TextKind, SecretKind, ListKind,
               MapKind, ChoiceKind>
      kind;
  std::string_view text;  ///< one sentence or two, for the reference
};

/// A part of the configuration file.
struct Section {
  std::string_view name;
  std::string_view text;
};

/// All of them, in the order of the reference. The one place where names, ranges and texts stand.
[[nodiscard]] std::span<const Field> fields() noexcept;
[[nodiscard]] std::span<const Section> sections() noexcept;

/// The field of that name, or null.
[[nodiscard]] const Field* find_field(std::string_view name) noexcept;

/// What may be written, for people: "duration, 1s to 1h".
[[nodiscard]] std::string describe_kind(const Field& field);
/// "FCAP_UPDATER_KAFKA_BROKERS".
[[nodiscard]] std::string environment_name(std::string_view field_name);

/// "500", "16KiB": the largest unit that fits.
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

}  // namespace fcap::updater
