package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taktsched/takt/internal/app"
	"github.com/taktsched/takt/internal/partition"
)

func newServerCommand(g *global) *cobra.Command {
	var cfg app.Config
	var lease partition.Lease
	var where database
	migrate := true
	cmd := &cobra.Command{
		Use:   "server --data DIR | --db URL",
		Short: "Run a server on a data directory, or one of several on a PostgreSQL database",
		Long: `Run a server until Ctrl-C or SIGTERM, which end it gracefully; a second one ends it at once.

With --data it is the only server, on a data directory. With --db it is one of any number on a PostgreSQL database (14 or later): they share
the work, any of them takes any call, and when one dies the others take over. They call each other at the address that --advertise
names, by default the one that is listened on.

--token-file names the file with the token that every call must show; with --worker-token-file workers have one
of their own, and each is refused where the other belongs. Without a token only this machine is served. A directory
that another server uses is refused with exit code 5.`,
		Example: `  takt server --data ./takt-data
  TAKT_DB=postgres://takt@db.internal/takt?sslmode=verify-full takt server --listen 10.0.0.3:7070 --token-file token
  takt server --data /var/lib/takt --listen 0.0.0.0:7070 --token-file people --worker-token-file workers \
    --tls-cert takt.crt --tls-key takt.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg.TokenFile, cfg.Version, cfg.Lease = g.tokenFile, buildVersion(), lease
			cfg.Logger, cfg.NoMigrate = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)), !migrate
			if err := where.choose(cmd, &cfg); err != nil {
				return err
			}
			a, err := app.New(ctx, cfg)
			if err != nil {
				return explain(ctx, "the server cannot start", err)
			}
			defer roomyHeap()()
			defer sayStopping(ctx, cmd.ErrOrStderr())()
			if err := a.Run(ctx); err != nil {
				// Whatever ended ctx: a server that was asked to stop and could not is a fault of its own.
				return explain(context.WithoutCancel(ctx), "the server ended", err)
			}
			return nil
		},
	}
	where.flags(cmd, "directory of the database; made when it is missing")
	where.env(cmd)
	f := cmd.Flags()
	f.StringVar(&cfg.DatabaseLoss, "db-loss", "tail", "what a failover of PostgreSQL may forget: tail, the newest commits; none, when replication is synchronous. "+
		"With none servers go on at once after it; otherwise nothing is granted until leases that were forgotten have ended (20s)")
	f.BoolVar(&migrate, "migrate", true, "bring the database to the form that this binary knows; without it one that is behind is refused")
	alsoEnv(f, "migrate", "db-loss")
	networkFlags(f, &cfg)
	leaseFlags(f, &lease)
	keepFlags(f, &cfg)
	return cmd
}

func networkFlags(f *pflag.FlagSet, cfg *app.Config) {
	f.StringVar(&cfg.Listen, "listen", app.DefaultListen, "address to listen on; port 0 takes a free one, which the log names")
	f.StringVar(&cfg.Server, "server-name", "", "name of this server among several (default the host's name and the port)")
	f.StringVar(&cfg.Advertise, "advertise", "", "URL at which the other servers reach this one (default by what is listened on)")
	f.StringVar(&cfg.PeerCA, "peer-ca", "", "PEM file of the certificates that vouch for the other servers' https addresses (default: the system's)")
	f.StringVar(&cfg.WorkerTokenFile, "worker-token-file", "", "file with the workers' token; --token-file is then people's alone")
	f.StringVar(&cfg.TLSCert, "tls-cert", "", "PEM file of the certificate: the server speaks HTTPS (TLS 1.2 or newer) only")
	f.StringVar(&cfg.TLSKey, "tls-key", "", "PEM file of its key")
	f.IntVar(&cfg.Connections, "max-connections", 0, "connections open at once; what comes beyond is closed (default 10000)")
	refuseZero(f, "max-connections")
	alsoEnv(f, "listen", "server-name", "advertise", "peer-ca", "worker-token-file", "tls-cert", "tls-key", "max-connections")
}

func leaseFlags(f *pflag.FlagSet, lease *partition.Lease) {
	f.DurationVar(&lease.TTL, "lease-ttl", 0, "length of a worker's lease (default 15s)")
	f.DurationVar(&lease.Beat, "beat", 0, "how often workers beat (default a fifth of the lease)")
	f.DurationVar(&lease.Margin, "margin", 0, "workers stop this much before a lease ends (default a tenth of the lease)")
	f.DurationVar(&lease.OwnerTTL, "owner-ttl", 0, "length of a server's lease of a partition (default 5s, at most a third of the worker's)")
	refuseZero(f, "lease-ttl", "beat", "margin", "owner-ttl")
	alsoEnv(f, "lease-ttl", "beat", "margin", "owner-ttl")
}

func keepFlags(f *pflag.FlagSet, cfg *app.Config) {
	f.Int64Var(&cfg.LogLimit, "log-limit", 0, "bytes that are kept of one attempt's log (default 10485760); the rest is dropped and counted")
	f.Var(newKeep(&cfg.Keep.Executions), "keep-executions", "how long ended executions are kept, unless the namespace says otherwise (default 30d)")
	f.Var(newKeep(&cfg.Keep.Logs), "keep-logs", "how long logs are kept, likewise (default 7d)")
	f.Var(newKeep(&cfg.Keep.Decisions), "keep-decisions", "how long it is known what was skipped and why (default 30d)")
	f.Var(newKeep(&cfg.Keep.Journal), "keep-journal", "how long the server's own record of its commits is kept (default 7d)")
	alsoEnv(f, "log-limit", "keep-executions", "keep-logs", "keep-decisions", "keep-journal")
}
