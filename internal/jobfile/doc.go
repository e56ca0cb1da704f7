// Package jobfile reads job documents from YAML and says at which line and column an error stands. It
// knows the rules that the API's types declare, no server and no schedule arithmetic.
package jobfile
