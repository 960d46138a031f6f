# cmake -DFILE=… -DOUTPUT=… -P EmbedPage.cmake: C++ that defines kPage of cli/simulate/page.h as the text of FILE.
file(READ ${FILE} page)
file(WRITE ${OUTPUT} "#include \"cli/simulate/page.h\"

const std::string_view fcap::cli::kPage = R\"page(${page})page\";
")
