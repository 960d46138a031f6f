// Includes in all forms.
// clang-format off
#include "redis/client.h"
#include <redis/client.h>
 #include "redis/link.h"
	#	include "redis/link.h"
#  include "redis/client.h"
#include"redis/client.h"
/* */ #include "redis/client.h"
#include "redis/client.h" // [
#include "tls/context.h"
#include "../redis/client.h"
#include "ledger/../redis/client.h"
#include "libfcap/redis/client.h"
#include CLIENT
