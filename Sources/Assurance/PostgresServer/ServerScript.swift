/// The script of the shell that runs the server.
enum ServerScript {
    /// Arguments: the folder, the programs' folder, the server's options, and a command that runs before the first start.
    ///
    /// All processes of the server inherit the pipe `life`, so that its reader ends when none of them is left.
    static let text = """
        folder=$1 bin=$2 options=$3 setup=$4
        cd "$folder" || exit 1
        # Cleans up even if the test process no longer reads the responses.
        trap : PIPE
        begin() {
            cat life > /dev/null &
            life=$!
            "$bin/pg_ctl" -D data -l server.log -o "$options" -w -t 120 start > start.log 2>&1 < /dev/null 9> life
        }
        end() { "$bin/pg_ctl" -D data -m "$1" -w stop > stop.log 2>&1 < /dev/null && wait "$life"; }
        # Halted, the first of the processes makes no more of them.
        killed() {
            read -r first < data/postmaster.pid
            kill -STOP "$first"
            kill -KILL $(pgrep -P "$first") "$first"
            wait "$life"
            # Where nobody collects the dead, their files look as if somebody lived.
            rm -f data/postmaster.pid .s.PGSQL.*.lock
        }
        # Suspended first and resumed last, the first of the processes makes no more of them meanwhile.
        suspend() {
            read -r first < data/postmaster.pid
            kill -STOP "$first" && for process in $(pgrep -P "$first"); do kill -STOP "$process" || :; done
        }
        resume() {
            read -r first < data/postmaster.pid
            for process in $(pgrep -P "$first"); do kill -CONT "$process" || :; done
            kill -CONT "$first"
        }
        answer() { if "$@"; then echo done; else cat start.log server.log | tr '\\n' ' '; echo failed; fi; }
        make() {
            mkfifo life \\
                && "$bin/initdb" -D data -A trust -U weir -N --no-instructions -E UTF8 --locale=C > start.log 2>&1 < /dev/null \\
                && eval "$setup" && begin
        }
        answer make
        while read -r command; do
            case $command in
                crash) answer end immediate ;;
                stop) answer end fast ;;
                kill) answer killed ;;
                start) answer begin ;;
                pause) answer suspend ;;
                resume) answer resume ;;
            esac
        done
        # A suspended server could not end.
        resume 2> /dev/null
        end immediate
        cd / && rm -rf "$folder"
        """
}
