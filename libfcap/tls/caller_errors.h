#pragma once

#include <cerrno>
#include <string>
#include <vector>

#include <openssl/err.h>

namespace fcap::tls {

/// Gives the calling thread an empty OpenSSL error queue, and at the end what it had before, errno
/// included. OpenSSL clears the queue inside a handshake, so that a mark would not do.
class CallerErrors {
 public:
  CallerErrors() {
    if (ERR_peek_error() != 0) set_aside();
  }
  ~CallerErrors() {
    if (ERR_peek_error() != 0) ERR_clear_error();
    if (!entries_.empty()) give_back();
    errno = errno_;
  }
  CallerErrors(const CallerErrors&) = delete;
  CallerErrors& operator=(const CallerErrors&) = delete;

 private:
  struct QueuedError {
    unsigned long code = 0;
    std::string file;
    int line = 0;
    std::string function;
    std::string data;
  };

  void set_aside() {
    for (;;) {
      QueuedError entry;
      const char* file = nullptr;
      const char* function = nullptr;
      const char* data = nullptr;
      int flags = 0;
      entry.code = ERR_get_error_all(&file, &entry.line, &function, &data, &flags);
      if (entry.code == 0) return;
      entry.file = file != nullptr ? file : "";
      entry.function = function != nullptr ? function : "";
      if (data != nullptr && (flags & ERR_TXT_STRING) != 0) entry.data = data;
      entries_.push_back(std::move(entry));
    }
  }
  void give_back() const {
    for (const QueuedError& entry : entries_) {
      ERR_new();
      ERR_set_debug(entry.file.c_str(), entry.line, entry.function.c_str());
      if (entry.data.empty()) {
        ERR_set_error(ERR_GET_LIB(entry.code), ERR_GET_REASON(entry.code), nullptr);
      } else {
        ERR_set_error(ERR_GET_LIB(entry.code), ERR_GET_REASON(entry.code), "%s",
                      entry.data.c_str());
      }
    }
  }

  const int errno_ = errno;
  std::vector<QueuedError> entries_;
};

}  // namespace fcap::tls
