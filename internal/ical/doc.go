// Package ical reads the days of a calendar from iCalendar text (RFC 5545): what a calendar of Takt can say of it, and
// nothing silently else.
package ical
