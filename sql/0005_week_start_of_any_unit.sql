-- A rule may keep its week_start when its unit changes: units other than weeks ignore it.

ALTER TABLE cap_rules
  DROP CONSTRAINT cap_rules_week_start_fits_unit,
  ADD CONSTRAINT cap_rules_week_start_fits_kind CHECK (week_start IS NULL OR window_kind = 'calendar');
