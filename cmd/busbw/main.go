// Command busbw measures collective communication between the nodes of a
// cluster, and inside them, without MPI.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"busbw/worker"
)

// version is set by the linker (-X main.version=…).
var version = "dev"

// Exit codes; a test pins them.
const (
	exitFine  = 0
	exitFail  = 1 // could not
	exitUsage = 2 // wrong use
	exitFound = 3 // ran, and found something: wrong data, a failed check
)

// usageError is a wrong flag, argument or environment variable.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// errFound ends a command that ran and found something; it was reported.
var errFound = errors.New("something was found")

// sameSignal is how soon after one signal another says the same.
const sameSignal = time.Second

func main() {
	if len(os.Args) < 2 || os.Args[1] != worker.RunnerVerb {
		// A write to a pipe that nobody reads is an error, not the end: results are
		// still being kept. Caught, not ignored: what is started does not inherit it.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends what does not; timeout(1) and job managers signal the
	// process and then its group, which is one signal to end, not two.
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(unread(os.Stdout))
	root.SetErr(unread(os.Stderr))
	return exitCode(root.ExecuteContext(ctx))
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "busbw",
		Short: "Measure collectives across and inside the nodes of a cluster, without MPI",
		Long: `busbw measures AllReduce, broadcast and their kin between nodes and inside them.
A worker runs on each node; workers find each other by gossip; busbw run drives them.`,
		Example: `  busbw run                                    # a little cluster on this machine
  busbw worker --secret-file key               # on every node …
  busbw run --join node1 --nodes 2 --secret-file key -b 8 -e 1G -f 2
  busbw report results/*.jsonl.zst --format nccl`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; busbw --help lists the commands", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = version
	root.SetVersionTemplate("busbw {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		runCommand(),
		workerCommand(),
		membersCommand(),
		linkCommand(),
		checkCommand(),
		reportCommand(),
		planCommand(),
		compareCommand(),
		sweepCommand(),
		pairsCommand(),
		acceptCommand(),
		profileCommand(),
		importCommand(),
		resultsCommand(),
		topoCommand(),
		versionCommand(),
		runnerCommand(),
	)
	for _, c := range append(root.Commands(), root) {
		c.SetFlagErrorFunc(flagError)
		if slices.Contains([]string{"report", "import", "compare", "results"}, c.Name()) {
			c.PersistentPreRun = endReading
		}
	}
	return root
}

// endReading lets Ctrl-C end a command that only reads, and may be waiting for
// a pipe or a terminal. What writes that pipe was interrupted too: what it had
// printed is still read.
func endReading(cmd *cobra.Command, _ []string) {
	errs := cmd.ErrOrStderr()
	context.AfterFunc(cmd.Context(), func() {
		time.Sleep(time.Second)
		fmt.Fprintln(errs, "busbw: interrupted before the end of what was to be read")
		os.Exit(exitFail)
	})
}

// exitCode says what went wrong, once, on one line, and picks the code.
func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFound
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "busbw:", err)
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "busbw:", err)
		return exitFail
	}
}

// noArgs refuses arguments with a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, got %q", cmd.CommandPath(), args[0])}
	}
	return nil
}
