package schedule_test

import (
	"testing"
	"time"

	"github.com/taktsched/takt/internal/schedule"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone, en, zh string }{
		{"30 2 * * 1-5", "Europe/Berlin", "At 02:30, on Monday to Friday, by the clocks of Europe/Berlin.", "02:30,星期一至星期五,时区 Europe/Berlin。"},
		{"*/5 * * * *", "", "Every 5 minutes, every day.", "每 5 分钟,每天。"},
		{"* * * * *", "", "Every minute, every day.", "每分钟,每天。"},
		{"0 */2 * * *", "", "At minute 0 of the hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, every day.",
			"0、2、4、6、8、10、12、14、16、18、20、22 点的第 0 分,每天。"},
		{"*/7 9-17 * * *", "", "At minute 0, 7, 14, 21, 28, 35, 42, 49, 56 of the hours 9 to 17, every day.", "9至17 点的第 0、7、14、21、28、35、42、49、56 分,每天。"},
		{"0 0 1,15 * 1", "", "At 00:00, on day 1, 15 of the month or on Monday.", "00:00,每月1、15 日或星期一。"},
		{"0 0 29 2 */7", "", "At 00:00, on day 29 of the month, if that is Sunday, in February.", "00:00,每月29 日且为星期日,2月。"},
		{"*/10 * * * * *", "", "Every 10 seconds, every day.", "每 10 秒,每天。"},
		{"15,45 0 3 * * *", "", "At second 15, 45 of minute 0 of the hours 3, every day.", ""},
		{"0 0 9 ? * 6#3", "", "At 09:00, on the third Friday of the month.", "09:00,每月第三个星期五。"},
		{"0 0 9 ? 1,3-5 6L 2027-2029", "", "At 09:00, on the last Friday of the month, in January, March to May, in the years 2027-2029.", ""},
		{"0 0 12 LW * ?", "", "At 12:00, on the last weekday (Mon-Fri) of the month.", ""},
	} {
		s := parse(t, schedule.Spec{Cron: c.cron, TimeZone: c.zone}, time.Time{})
		if got := schedule.Explain(s, schedule.English); got != c.en {
			t.Errorf("%s: %q, want %q", c.cron, got, c.en)
		}
		if got := schedule.Explain(s, schedule.Chinese); c.zh != "" && got != c.zh {
			t.Errorf("%s: %q, want %q", c.cron, got, c.zh)
		}
	}
}
