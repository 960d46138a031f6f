// TLS is another room's.
#include <openssl/ssl.h>
