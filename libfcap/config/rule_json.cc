#include "config/rule_json.h"
