# One interface target carries what every fcap target is compiled with. It is never exported: a
# consumer's build keeps its own warnings.
add_library(fcap_compiler_options INTERFACE)
target_compile_options(
  fcap_compiler_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wimplicit-fallthrough
            -fno-omit-frame-pointer
            # Behind -Wpedantic: librdkafka's RD_KAFKA_V_... macros are written with them.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-gnu-statement-expression>)
if(FCAP_WARNINGS_AS_ERRORS)
  target_compile_options(fcap_compiler_options INTERFACE -Werror)
endif()
if(FCAP_SANITIZE)
  target_compile_options(fcap_compiler_options INTERFACE -fsanitize=${FCAP_SANITIZE})
  target_link_options(fcap_compiler_options INTERFACE -fsanitize=${FCAP_SANITIZE})
  if(FCAP_SANITIZE MATCHES "undefined")
    target_compile_options(fcap_compiler_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()
