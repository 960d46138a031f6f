#include "tls/certificate_text.h"

#include <memory>

#include <arpa/inet.h>
#include <openssl/x509v3.h>

namespace fcap::tls {
namespace {

using Text = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string content(const Text& text) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

std::string time_text(const ASN1_TIME* time) {
  const Text text(BIO_new(BIO_s_mem()), &BIO_free);
  if (!text || time == nullptr) return "?";
  ASN1_TIME_print_ex(text.get(), time, ASN1_DTFLGS_ISO8601);
  return content(text);
}

std::string subject(X509* certificate) {
  const Text text(BIO_new(BIO_s_mem()), &BIO_free);
  if (!text || certificate == nullptr) return "?";
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  return content(text);
}

std::string address_text(const ASN1_OCTET_STRING* bytes) {
  char room[INET6_ADDRSTRLEN] = "?";
  inet_ntop(ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), room,
            sizeof(room));
  return room;
}

// The names and addresses that a certificate is for.
std::string names(X509* certificate) {
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (all == nullptr) return subject(certificate);
  std::string text;
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
    std::string one;
    if (name->type == GEN_DNS) {
      const ASN1_STRING* const dns = name->d.dNSName;
      one.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(dns)),
                 static_cast<std::size_t>(ASN1_STRING_length(dns)));
    } else if (name->type == GEN_IPADD) {
      one = address_text(name->d.iPAddress);
    }
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  GENERAL_NAMES_free(all);
  return text;
}

}  // namespace

std::string why_refused(X509_STORE_CTX* check, const std::string& server_name,
                        const CertificateAdvice& advice) {
  const int error = X509_STORE_CTX_get_error(check);
  X509* const certificate = X509_STORE_CTX_get_current_cert(check);
  const std::string whose =
      X509_STORE_CTX_get_error_depth(check) == 0 ? "the server's certificate" : "its authority";
  const std::string words = X509_verify_cert_error_string(error);
  switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return whose + " is not for \"" + server_name + "\" but for " +
             names(X509_STORE_CTX_get0_cert(check)) + " (" + advice.server_name + ")";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return whose + " (" + subject(certificate) + ") expired at " +
             time_text(X509_get0_notAfter(certificate)) + ": " + advice.renewal;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return whose + " (" + subject(certificate) + ") is valid only from " +
             time_text(X509_get0_notBefore(certificate)) + " on: compare the clocks";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "the server's certificate comes from an authority that is not trusted here (" +
             advice.authorities + "): " + words;
    default:
      return whose + " is refused (" + advice.authorities + "): " + words;
  }
}

}  // namespace fcap::tls
