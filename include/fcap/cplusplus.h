#pragma once

// Every public header includes this one, directly or through others, before anything that an older
// language standard does not know.
#if __cplusplus < 202002L
#error \
    "fcap needs C++20: compile with -std=c++20, or in CMake link fcap::fcap, which asks for cxx_std_20"
// A header that does not exist ends the compilation here, so that the line above is not buried
// under what an older standard makes of the rest.
#include <fcap/needs-c++20>
#endif
