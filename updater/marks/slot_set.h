#pragma once

#include "redis/slot_set.h"

namespace fcap::updater {

using redis::SlotSet;

}  // namespace fcap::updater
