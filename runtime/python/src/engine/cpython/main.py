# How scripts are held stands in `settings`, which came with this text.


def main():
    try:
        settings["filter"] = bytes.fromhex(settings["filter"])
        settings["nothing"] = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        warm_up()
        with open("/proc/self/statm") as pages:
            settings["base_bytes"] = int(pages.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        layers = enter_jail() if settings["jail"] else []
        if settings["jail"]:
            layers += try_child(settings)
        settings["layers"] = layers
        Zygote(settings, make_functions, run_script).serve()
    except BaseException as error:
        why = str(error) if isinstance(error, JailError) else f"{type(error).__name__}: {error}"
        os.write(0, json.dumps({"refused": why[:1000]}).encode() + b"\n")
        os._exit(3)


main()
