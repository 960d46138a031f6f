// A part of the updater.
#include "updater/pipeline/intake.h"
