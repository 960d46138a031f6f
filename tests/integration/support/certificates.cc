#include "support/certificates.h"

#include <fstream>
#include <stdexcept>

#include "support/service.h"

namespace fcap::testing {
namespace {

void openssl(std::vector<std::string> words) {
  words.insert(words.begin(), "openssl");
  const Finished finished = run(words);
  if (finished.exit_code != 0) {
    throw std::runtime_error("openssl " + words[1] + ": " + finished.errors + finished.output);
  }
}

void make_key(const std::string& path) {
  openssl({"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path});
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

bool Certificates::available() {
  return present(has_program("openssl"), "openssl is missing");
}

Certificates::Certificates(const std::string& name) {
  make_key(file("ca.key"));
  openssl({"req", "-x509", "-new", "-key", file("ca.key"), "-subj", "/CN=" + name, "-days", "3650",
           "-out", ca_file()});
  write(file("index"), "");
  write(file("index.attr"), "unique_subject = no\n");
  write(file("ca.conf"),
        "[ca]\ndefault_ca = this\n[this]\ndatabase = " + file("index") +
            "\nrand_serial = yes\ndefault_md = sha256\npolicy = any\nx509_extensions = names\n"
            "copy_extensions = copy\nnew_certs_dir = " +
            directory_.path().string() +
            "\n[any]\ncommonName = supplied\n[names]\nbasicConstraints = CA:false\n");
}

Certificate Certificates::issue(const std::string& name, const std::string& names,
                                const std::string& from, const std::string& to) const {
  const Certificate made{file(name + ".pem"), file(name + ".key")};
  make_key(made.key_file);
  openssl({"req", "-new", "-key", made.key_file, "-subj", "/CN=" + name, "-addext",
           "subjectAltName=" + names, "-out", file(name + ".csr")});
  openssl({"ca", "-batch", "-config", file("ca.conf"), "-cert", ca_file(), "-keyfile",
           file("ca.key"), "-startdate", from, "-enddate", to, "-notext", "-in",
           file(name + ".csr"), "-out", made.certificate_file});
  return made;
}

}  // namespace fcap::testing
