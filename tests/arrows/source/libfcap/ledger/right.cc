// What the ledger may include: nothing of this is refused.
#include "ledger/right.h"

#include <vector>

#include <xxhash.h>

#include <fcap/time.h>

#include "right.h"  // a comment; with what CMake takes for a list: [

// A comment may name EVP_MAC, and a name may end in_PQconnectdb().
