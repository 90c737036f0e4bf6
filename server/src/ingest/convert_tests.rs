use super::Context;

#[test]
fn a_process_is_called_by_its_executable_and_a_kernel_thread_by_all_of_its_name() {
    for (executable_name, executable_path, wanted) in [
        ("kworker/u8:0", "", "kworker/u8:0"),
        ("kubelet", "/usr/bin/kubelet", "kubelet"),
        ("/usr/bin/kubelet", "", "kubelet"),
        ("./run", "", "run"),
        ("", "bin/agent", "agent"),
        ("", "/opt/agent/", "/opt/agent/"),
    ] {
        let context = Context {
            executable_name,
            executable_path,
            ..Context::default()
        };
        assert_eq!(context.process(), wanted);
    }
}
