const IMF_FIXDATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT$/;

/** Reads a date of HTTP (RFC 9110 5.6.7), in its one form that is to be sent: ms since 1970, undefined for what only resembles it. */
export const parseFixdate = (value: string): number | undefined => {
  const date = IMF_FIXDATE.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : date;
};
