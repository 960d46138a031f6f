#pragma once

#include <clocale>

namespace fcap::postgres {

/// While one lives, what libpq and the system say on this thread is in English, whatever language
/// the host has chosen: advice is found by libpq's words. Other threads are not concerned.
class EnglishMessages {
 public:
  EnglishMessages() noexcept {
    const locale_t own = ::duplocale(::uselocale(nullptr));
    if (own == nullptr) return;  // no memory: then in the host's language
    english_ = ::newlocale(LC_MESSAGES_MASK, "C", own);
    if (english_ == nullptr) {
      ::freelocale(own);
    } else {
      before_ = ::uselocale(english_);
    }
  }
  ~EnglishMessages() {
    if (english_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(english_);
  }
  EnglishMessages(const EnglishMessages&) = delete;
  EnglishMessages& operator=(const EnglishMessages&) = delete;

 private:
  locale_t english_ = nullptr;
  locale_t before_ = nullptr;
};

}  // namespace fcap::postgres
