#pragma once

#include <cstddef>
#include <string>

#include <fcap/status.h>

namespace fcap::base {

/// More than any file that is meant to be read whole holds.
inline constexpr std::size_t kFileBytesMax = std::size_t{2} << 30U;

/// The content of a file. `bytes_max` keeps a device or a log that is named by mistake from filling
/// the memory. kNotFound: it cannot be read, as a directory cannot, or it is larger; the text names
/// the file and says why.
[[nodiscard]] Result<std::string> read_file(const std::string& path,
                                            std::size_t bytes_max = kFileBytesMax);

}  // namespace fcap::base
