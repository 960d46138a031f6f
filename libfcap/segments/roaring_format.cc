#include "segments/roaring_format.h"

#include <bit>
#include <cstring>
#include <string>

namespace fcap::segments {
namespace {

// The format's own constants: github.com/RoaringBitmap/RoaringFormatSpec.
constexpr std::uint32_t kCookieWithoutRuns = 12346;
constexpr std::uint32_t kCookieWithRuns = 12347;
constexpr std::uint32_t kContainersMax = 65536;
constexpr std::uint32_t kArrayMembersMax = 4096;
constexpr std::uint32_t kOffsetsFrom = 4;
constexpr std::size_t kBitsetBytes = 8192;

static_assert(std::endian::native == std::endian::little, "as the bytes on disk");

template <typename T>
T read_at(std::string_view bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool has_bit(std::string_view bytes, std::size_t begin, std::uint32_t bit) noexcept {
  const std::uint32_t eight = read_at<std::uint8_t>(bytes, begin + bit / 8);
  return (eight >> bit % 8 & 1U) != 0;
}

}  // namespace

template <typename T>
bool Roaring64Reader::read(T& value) {
  if (bytes_.size() - at_ < sizeof value) return wrong("ends too early");
  value = read_at<T>(bytes_, at_);
  at_ += sizeof value;
  return true;
}

bool Roaring64Reader::skip(std::size_t bytes) {
  if (bytes_.size() - at_ < bytes) return wrong("ends too early");
  at_ += bytes;
  return true;
}

bool Roaring64Reader::wrong(const char* what) {
  status_ =
      Status::error(StatusCode::kCorrupt, "is not a portable 64-bit roaring bitmap: at byte " +
                                              std::to_string(at_) + " it " + what);
  return false;
}

bool Roaring64Reader::begin() {
  begun_ = true;
  return read(buckets_left_);
}

std::optional<Roaring64Reader::Bucket> Roaring64Reader::next() {
  if (!status_.ok() || (!begun_ && !begin())) return std::nullopt;
  if (buckets_left_ == 0) {
    if (at_ != bytes_.size()) (void)wrong("continues where it should end");
    return std::nullopt;
  }
  --buckets_left_;
  Bucket bucket;
  if (!read(bucket.high)) return std::nullopt;
  if (last_high_ && bucket.high <= *last_high_) {
    (void)wrong("has its bitmaps in the wrong order");
    return std::nullopt;
  }
  last_high_ = bucket.high;
  const std::size_t begin = at_;
  if (!read_bitmap(bucket)) return std::nullopt;
  bucket.bytes = bytes_.substr(begin, at_ - begin);
  return bucket;
}

bool Roaring64Reader::read_bitmap(Bucket& bucket) {
  std::uint32_t cookie = 0;
  if (!read(cookie)) return false;
  std::size_t run_flags = 0;
  const bool has_runs = (cookie & 0xFFFFU) == kCookieWithRuns;
  if (has_runs) {
    bucket.containers = (cookie >> 16U) + 1;
    run_flags = at_;
    if (!skip((bucket.containers + 7) / 8)) return false;
  } else {
    if (cookie != kCookieWithoutRuns) return wrong("has no bitmap's cookie");
    if (!read(bucket.containers)) return false;
    if (bucket.containers > kContainersMax) return wrong("has too many containers");
  }
  const std::size_t heads = at_;
  if (!skip(std::size_t{4} * bucket.containers)) return false;
  // The offsets of the containers are not needed when they are read in order.
  if ((!has_runs || bucket.containers >= kOffsetsFrom) &&
      !skip(std::size_t{4} * bucket.containers)) {
    return false;
  }
  for (std::uint32_t i = 0; i < bucket.containers; ++i) {
    const auto key = read_at<std::uint16_t>(bytes_, heads + std::size_t{4} * i);
    if (i > 0 && key <= read_at<std::uint16_t>(bytes_, heads + std::size_t{4} * (i - 1))) {
      return wrong("has its containers in the wrong order");
    }
    const std::uint32_t members =
        std::uint32_t{read_at<std::uint16_t>(bytes_, heads + std::size_t{4} * i + 2)} + 1;
    const bool is_runs = has_runs && has_bit(bytes_, run_flags, i);
    const bool readable = is_runs                      ? read_runs(members)
                          : members > kArrayMembersMax ? read_bitset(members)
                                                       : read_array(members);
    if (!readable) return false;
    bucket.members += members;
  }
  return true;
}

bool Roaring64Reader::read_array(std::uint32_t members) {
  const std::size_t begin = at_;
  if (!skip(sizeof(std::uint16_t) * members)) return false;
  for (std::size_t at = begin + 2; at < at_; at += 2) {
    if (read_at<std::uint16_t>(bytes_, at) <= read_at<std::uint16_t>(bytes_, at - 2)) {
      return wrong("has an array in the wrong order before this");
    }
  }
  return true;
}

bool Roaring64Reader::read_bitset(std::uint32_t members) {
  const std::size_t begin = at_;
  if (!skip(kBitsetBytes)) return false;
  std::uint32_t counted = 0;
  for (std::size_t at = begin; at < at_; at += 8) {
    counted += static_cast<std::uint32_t>(std::popcount(read_at<std::uint64_t>(bytes_, at)));
  }
  return counted == members || wrong("has a bitset of another size before this");
}

bool Roaring64Reader::read_runs(std::uint32_t members) {
  std::uint16_t runs = 0;
  if (!read(runs)) return false;
  std::uint32_t next = 0;  // the first number that may begin a run
  std::uint32_t counted = 0;
  for (std::uint16_t i = 0; i < runs; ++i) {
    std::uint16_t begin = 0;
    std::uint16_t more = 0;
    if (!read(begin) || !read(more)) return false;
    if (begin < next || std::uint32_t{begin} + more > 0xFFFFU) {
      return wrong("has a run out of its place before this");
    }
    next = std::uint32_t{begin} + more + 1;
    counted += std::uint32_t{more} + 1;
  }
  return counted == members || wrong("has runs of another size before this");
}

}  // namespace fcap::segments
