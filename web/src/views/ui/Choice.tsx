/** One of a few: as a drop-down with its label before it, or as buttons side by side. */
interface Props<T extends string> {
  label: string;
  /** Where the label alone does not say what is chosen. */
  name?: string;
  title?: string;
  value: T;
  /** Values and their titles; one that can't be chosen has the reason behind it. */
  options: readonly (readonly [value: T, title: string, whyNot?: string])[];
  onChoose: (value: T) => void;
  id?: string;
}

export function Choice<T extends string>({ label, name, title, value, options, onChoose, id }: Props<T>) {
  return (
    <label class="inline" title={title}>
      {label}
      {label !== "" && " "}
      <select
        value={value}
        aria-label={name}
        data-testid={id}
        onChange={(event) => {
          const chosen = options.find(([one]) => one === event.currentTarget.value);
          if (chosen !== undefined) onChoose(chosen[0]);
        }}
      >
        {options.map(([one, text, whyNot = ""]) => (
          <option key={one} value={one} disabled={whyNot !== ""}>
            {whyNot === "" ? text : `${text} (${whyNot})`}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SegmentsProps<T extends string> {
  name: string;
  /** None is chosen where it is none of the options. */
  value: T | "";
  options: readonly (readonly [value: T, title: string, hint?: string])[];
  onChoose: (value: T) => void;
}

export function Segments<T extends string>({ name, value, options, onChoose }: SegmentsProps<T>) {
  return (
    <div class="segments" role="group" aria-label={name}>
      {options.map(([one, title, hint]) => (
        <button key={one} type="button" title={hint} aria-pressed={value === one} onClick={() => onChoose(one)}>
          {title}
        </button>
      ))}
    </div>
  );
}
